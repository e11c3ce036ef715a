#!/usr/bin/env bash
# Package: torch 2.13.0, numpy 2.4.6
# Date: 2026-11-27
# Behaviour: The gradient that an operator of one's own receives behind a sum has strides of 0, in
#     which one element stands for a row or for all; no element of it was written to memory.
# Guess: A gradient lies in memory as the tensor does that it belongs to.
# Seen:
#     y.sum(): shape (4, 3), strides (0, 0)
#     y.sum(1) times weights: shape (4, 3), strides (1, 0)
#     y.sum(0) times weights: shape (4, 3), strides (0, 1)

source "$(dirname "$0")/lib.sh"
install torch torch==2.13.0 numpy==2.4.6
judge "$(run torch <<'END'
import torch


class Own(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, grad):
        print(f"{name}: shape {tuple(grad.shape)}, strides {grad.stride()}")
        return 2 * grad


sums = {
    "y.sum()": lambda y: y.sum(),
    "y.sum(1) times weights": lambda y: (y.sum(1) * torch.arange(4.0)).sum(),
    "y.sum(0) times weights": lambda y: (y.sum(0) * torch.arange(3.0)).sum(),
}
for name, total in sums.items():
    total(Own.apply(torch.ones(4, 3, requires_grad=True))).backward()
END
)"
