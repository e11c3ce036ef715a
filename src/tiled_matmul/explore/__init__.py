"""Show: figures that a reader changes, in the book; elsewhere and on paper they stand still.

May import: plots and what lies below it. Front door: `explore`.
"""

from tiled_matmul.explore.page import Explorable, explore

__all__ = ["Explorable", "explore"]
