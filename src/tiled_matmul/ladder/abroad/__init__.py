"""Run: rungs in languages that the course does not interpret, and what their compilers made.

A kernel is a file here, as its language has it; `products/` holds what `make languages` makes of
it, PTX or machine code, and for each language a lock names the compiler. Nothing here is imported,
not even the files in Python: the rungs are in the folder above.
"""
