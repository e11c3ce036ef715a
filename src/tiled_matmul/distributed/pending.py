"""Find a read or a write of memory that is still being sent or received.

A transfer that was started may be done or not: whether a result is wrong depends on luck. This
looks at the order of the calls instead. From a receive until its wait, its memory is not to be
touched; from a send until its wait, it is not to be written. Transfers from rank to rank are
watched. Memory counts from a tensor's first byte to its last.
"""

from __future__ import annotations

import linecache
import sys
from collections.abc import Iterator
from typing import Any

import torch.distributed as dist
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from tiled_matmul.kit.layouts import overlap

SOURCE = "<your cut>"  # the file name of code that came as text
TRANSFERS = ("send", "recv_")


_active: list[Pending] = []


def touched(*read: Tensor, written: Tensor) -> None:
    """Say that a kernel which PyTorch does not see reads and writes these."""
    for pending in _active:
        for tensor in read:
            pending.touch(tensor, writes=False)
        pending.touch(written, writes=True)


class Pending(TorchDispatchMode):
    """Inside it, `findings` grows by a sentence for each such read or write.

    Raises ValueError for transfers that start together where one receives into the other's memory,
    and for asynchronous calls whose waits it cannot see.
    """

    def __init__(self) -> None:
        super().__init__()
        self.findings: list[str] = []
        self.moving: list[tuple[str, Tensor]] = []
        self.waits: list[_Wait] = []
        self._starts = False

    def __enter__(self) -> Pending:
        self._batch = dist.batch_isend_irecv
        dist.batch_isend_irecv = self._started
        _active.append(self)
        super().__enter__()
        return self

    def __exit__(self, kind: Any, *error: Any) -> None:
        super().__exit__(kind, *error)
        _active.remove(self)
        dist.batch_isend_irecv = self._batch
        if kind is None:  # what was left is done before anything else is called
            for wait in self.waits:
                wait.finish()

    def _started(self, p2p_op_list: list[dist.P2POp]) -> list[_Wait]:
        """Stand for `dist.batch_isend_irecv`."""
        begun = [("sent" if x.op is dist.isend else "received", x.tensor) for x in p2p_op_list]
        for number, (kind, one) in enumerate(begun):
            for other_kind, other in begun[:number]:
                if overlap(one, other) and "received" in (kind, other_kind):  # it would never end
                    also = "sends" if "sent" in (kind, other_kind) else "receives into already"
                    raise ValueError(f"{_where()} receives into memory that it {also}")
        # Starting a transfer reads what it sends, and will write what it receives.
        for kind, tensor in begun:
            self.touch(tensor, writes=kind == "received")
        self._starts = True
        try:
            works = self._batch(p2p_op_list)
        finally:
            self._starts = False
        self.moving += begun
        each = [[one] for one in begun] if len(works) == len(begun) else [begun] * len(works)
        waits = [_Wait(work, self, ended) for work, ended in zip(works, each, strict=True)]
        self.waits += waits
        return waits

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs=None) -> Any:
        if func.namespace == "c10d" and not self._starts:
            # The waits of these are not seen.
            if func._opname in TRANSFERS:
                raise ValueError(f"{_where()}: start transfers by `batch_isend_irecv`")
            if _asynchronous(func, args):
                raise ValueError(f"{_where()}: an asynchronous collective is not watched")
        for tensor, writes in _used(func, args, kwargs or {}):
            self.touch(tensor, writes)
        return func(*args, **(kwargs or {}))

    def touch(self, tensor: Tensor, writes: bool) -> None:
        """Add a finding if a tensor may not be read, or written, now."""
        for kind, moving in self.moving:
            if overlap(tensor, moving) and (writes or kind == "received"):
                doing = "writes" if writes else "reads"
                self.findings.append(
                    f"{_where()} {doing} rows that are still being {kind}: no wait came before"
                )
                return


class _Wait:
    """What `batch_isend_irecv` returns, with a wait that is seen."""

    def __init__(self, work: dist.Work, pending: Pending, begun: list) -> None:
        self._work, self._pending, self._begun = work, pending, begun
        self._waited = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._work, name)

    def finish(self) -> None:
        """Wait, unless that has been done."""
        if not self._waited:
            self.wait()

    def wait(self, *timeout: Any) -> bool:
        """Wait for the transfer."""
        self._waited = True
        done = {id(each) for each in self._begun}
        moving = self._pending.moving
        self._pending.moving = [each for each in moving if id(each) not in done]
        return self._work.wait(*timeout)


def _asynchronous(func: Any, args: tuple) -> bool:
    """Does a collective return before it has ended? A default is left out of the arguments."""
    for place, argument in enumerate(func._schema.arguments):
        if argument.name in ("async_op", "asyncOp"):
            return args[place] if place < len(args) else argument.default_value
    return False


def _used(func: Any, args: tuple, kwargs: dict) -> Iterator[tuple[Tensor, bool]]:
    """Yield the tensors that an operator reads or writes, each with whether it writes."""
    schema = func._schema
    views = any(r.alias_info is not None and not r.alias_info.is_write for r in schema.returns)
    if views or func._opname in TRANSFERS:
        return
    for place, argument in enumerate(schema.arguments):
        given = args[place] if place < len(args) else kwargs.get(argument.name)
        for tensor in given if isinstance(given, list | tuple) else (given,):
            if isinstance(tensor, Tensor):
                yield tensor, bool(argument.alias_info and argument.alias_info.is_write)


def _where() -> str:
    """Return the line of the cut that runs, quoted."""
    frame = sys._getframe()
    while frame is not None:
        name = frame.f_code.co_filename
        if name == SOURCE or name.endswith("distributed/cuts.py"):
            line = linecache.getline(name, frame.f_lineno).partition("  #")[0].strip()
            if name == SOURCE or frame.f_code.co_name not in ("passed_on", "multiply", "part"):
                return f"`{line}`"
        frame = frame.f_back
    return "a call"
