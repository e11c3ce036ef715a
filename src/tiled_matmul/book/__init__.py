"""The book's machinery: generated cells, hygiene, runs on a GPU, and the pages made at build time.

Importing this package imports neither Jupyter nor Sphinx.
"""
