"""Count what a rank receives, from the calls of torch.distributed that it makes.

Collectives count as their ring algorithms move data: with p ranks, an all-gather receives p - 1
parts, a reduce-scatter as much, an all-reduce both.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch.utils._python_dispatch import TorchDispatchMode


class Traffic(TorchDispatchMode):
    """Inside it, `received` grows by the bytes of each call, and `calls` lists their names.

    Raises ValueError for a call that it cannot count.
    """

    def __init__(self) -> None:
        super().__init__()
        self.received, self.calls = 0, []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple = (), kwargs: Any = None
    ) -> Any:
        if func.namespace == "c10d":
            if (name := func._opname) not in RECEIVED:
                known = ", ".join(RECEIVED)
                raise ValueError(f"what {name} receives is not counted; there are {known}")
            self.received += RECEIVED[name](args)
            self.calls.append(name)
        return func(*args, **(kwargs or {}))


def _bytes(tensors: Any) -> int:
    if isinstance(tensors, torch.Tensor):
        return tensors.numel() * tensors.element_size()
    return sum(map(_bytes, tensors))


def _group(args: tuple) -> dist.ProcessGroup:
    """Return the process group among a call's arguments."""
    for each in args:
        if isinstance(each, torch.ScriptObject):
            try:
                return dist.ProcessGroup.unbox(each)
            except (RuntimeError, TypeError):  # it is an operation, such as a sum
                continue
    raise ValueError("a call of torch.distributed without a process group")


def _share(args: tuple) -> float:
    """Return (p - 1) / p of a call's group."""
    p = _group(args).size()
    return (p - 1) / p


def _broadcast(args: tuple) -> int:
    tensors, _, root, *_ = args
    return 0 if _group(args).rank() == root else _bytes(tensors)


RECEIVED = {
    "send": lambda args: 0,
    "recv_": lambda args: _bytes(args[0]),
    "allreduce_": lambda args: round(2 * _bytes(args[0]) * _share(args)),
    "_allgather_base_": lambda args: round(_bytes(args[0]) * _share(args)),
    "_reduce_scatter_base_": lambda args: round(_bytes(args[1]) * _share(args)),
    "allgather_": lambda args: round(_bytes(args[0]) * _share(args)),
    "reduce_scatter_": lambda args: round(_bytes(args[1]) * _share(args)),
    "broadcast_": _broadcast,
    "barrier": lambda args: 0,
}
