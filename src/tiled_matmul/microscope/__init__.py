"""See: kernels run or compiled without a GPU, with every access and every instruction in view.

May import: models, machine. Front doors: `cuda.trace`, `triton.trace_tiles`, `compiled`.
"""
