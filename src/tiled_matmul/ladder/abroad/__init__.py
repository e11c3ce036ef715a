"""Run: rungs in languages that the course does not interpret, and what their compilers made.

A kernel is a file here, as its language has it; `products/` holds PTX that `make languages` makes
of it, and for each language a lock names the compiler. Nothing here is imported: the rungs are in
the folder above.
"""
