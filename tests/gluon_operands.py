"""Operands for rungs in Gluon, and whether their kernels run here."""

import torch

from tiled_matmul.kit.backend import select
from tiled_matmul.kit.gluon import hopper
from tiled_matmul.problem import Problem

PLACE = "cuda" if select().on_gpu else "cpu"


def operands(shape, dtype="float16", layout="nn", seed=0):
    a, b = Problem(*shape, dtype).inputs(seed, device=PLACE)
    pairs = zip((a, b), layout, strict=True)
    return [x if side == "n" else x.T.contiguous().T for x, side in pairs]


def here():
    """Do kernels in Gluon run here, or others in their place?"""
    return hopper(torch.empty(1, dtype=torch.float16))
