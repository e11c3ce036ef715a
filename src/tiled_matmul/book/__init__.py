"""The book's machinery: generated cells, hygiene, runs on a GPU, and the pages made at build time.

Importing this package imports neither Jupyter nor Sphinx.
"""

from tiled_matmul.book.cli import add_parser

__all__ = ["add_parser"]
