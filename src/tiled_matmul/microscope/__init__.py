"""See: run or compile kernels without a GPU, and inspect every access and every instruction.

May import: models, machine. Front doors: `cuda.trace`, `triton.trace_tiles`,
`gluon.trace_gluon`, `compiled`.
"""
