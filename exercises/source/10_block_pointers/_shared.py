"""What the exercises of chapter 10 share."""

from __future__ import annotations

REMEDIES = {
    "not read": "Does the tile begin at the program's own corner, does the loop run over the last, "
    "incomplete block, and does it move both tiles on? `tl.advance` returns the pointer that has "
    "moved: keep it.",
    "not stored": "x goes along the columns here, y along the rows: program_id(0) makes the left "
    "edge, program_id(1) the top. Is C's tile at (top, left), and does the store check its edges?",
    "unmasked tail": "A block pointer is made with the matrix's shape, (rows, columns), and checks "
    "both axes if it is told so: boundary_check=(0, 1). Pointers of your own need a mask for each "
    "axis that may end, joined by &.",
}
