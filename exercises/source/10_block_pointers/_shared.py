"""What the exercises of chapter 10 share."""

from __future__ import annotations

EDGES = (
    "Either an edge is not checked, or these are not the addresses of its elements. A block "
    "pointer takes the matrix's shape, (rows, columns), and the strides that were passed, "
    "(row stride, column stride), as other elements may lie between two rows; it checks both axes "
    "with boundary_check=(0, 1). Pointers of your own need a mask for each axis that may end, "
    "joined by &."
)
REMEDIES = {
    "not read": "Does the tile begin at the program's own corner, does the loop run over the last, "
    "incomplete block, and does it move both tiles on? `tl.advance` returns the pointer that has "
    "moved: keep it.",
    "not stored": "x goes along the columns here, y along the rows: program_id(0) makes the left "
    "edge, program_id(1) the top. Is C's tile at (top, left), and does the store check its edges?",
    "stored twice": "x goes along the columns here, y along the rows: program_id(0) makes the left "
    "edge, program_id(1) the top. If the kernel takes rows `% M` and columns `% N` for its loads, "
    "it needs both again, without `%`, for the store and its mask.",
    "unmasked tail": EDGES,
}
