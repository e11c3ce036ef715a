"""Take home: the best rung as an operator of PyTorch, and layers that use it.

May import: the ladder and what lies below it. Front doors: `matmul`, `bmm`, `linear`, `Linear`,
`swap`, `tuning`.

A model of your own runs on the course's kernels after two lines:

    from tiled_matmul.torch import swap
    swap(model)  # every nn.Linear; returns how many

Parameters, `state_dict`, optimisers, autocast and `torch.compile` go on as before. Tensors on a GPU
go to `triton_best`, tensors on the CPU to a reference. Importing this package chooses no back end
and needs no Triton; the first product on a GPU does.
"""

import tiled_matmul.torch.flops  # noqa: F401 (registers the operators' formulas)
from tiled_matmul.torch.batched import bmm
from tiled_matmul.torch.layers import MLP, Linear, TransformerBlock, linear, swap
from tiled_matmul.torch.operator import matmul, tuning

__all__ = ["MLP", "Linear", "TransformerBlock", "bmm", "linear", "matmul", "swap", "tuning"]
