"""Show: the functions that notebooks call (`page`); running, stamping, checking and rendering them.

May import: plots and what lies below them. Front doors: `page`, `cli.add_parser`.

Importing this package imports neither Jupyter nor Sphinx.
"""

from tiled_matmul.book.cli import add_parser

__all__ = ["add_parser"]
