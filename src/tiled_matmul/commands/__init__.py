"""The commands of `python -m tiled_matmul` that need more than one room.

May import: every room. Front door: each module's `add_parser`.
"""
