"""Plans of launches: what a launcher works out for operands of one kind, it works out once.

The first call with operands of a kind runs the launcher with all its checks, and notes what it
launches. Later calls with operands of that kind fill new addresses into these launches and make
them. A kind is everything that a launcher may look at: shapes, strides, dtype, device, whether an
address is a multiple of 16 bytes, which operands begin at one address, and the options. Options
that are tensors, such as a bias, are operands. A launcher that looks at numbers in the GPU's memory
says so (`every_time`). Whether out overlaps an input is looked at each
time, from the addresses. What cannot be noted is not remembered: then every call runs the launcher.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial, wraps
from typing import Any

import torch

from tiled_matmul.kit.layouts import ALIGNED, span_bytes
from tiled_matmul.microscope.cuda.kernel import watched

MOST_PLANS = 4096  # of one launcher, then it begins anew
TENSORS = (torch.Tensor, torch.nn.Parameter)
# What a product is of, if nothing is said, where no sum would fit the dtype of its factors.
WIDE = dict.fromkeys((torch.float8_e4m3fn, torch.float8_e5m2), torch.bfloat16)


class _Noted(threading.local):
    """The plan that this thread is noting, and how many want none to be used."""

    plan: Plan | None = None
    pauses = 0


_noted = _Noted()
_of_launchers: list[dict] = []


class _CannotNote(Exception):
    """A step depends on something that a later call may not have."""


@dataclass
class Plan:
    """What a launcher did with a, b, out and others: its steps, functions of tensors and a stream.

    The list begins with a, b, out and the options that are tensors; a step may append one. `spans`
    are the bytes from the first to the last address of each, `made` the shape and dtype of out.
    While it is noted, `tensors` holds the first call's own.
    """

    tensors: list = field(default_factory=list)
    steps: list[Callable] | None = None  # None if they cannot be noted
    spans: tuple[int, ...] = ()
    made: tuple = ()

    def run(self, tensors: list, gpu: int) -> None:
        """Make the launches with these tensors, on the current stream of this GPU."""
        stream = torch._C._cuda_getCurrentRawStream(gpu)  # what Triton asks as well
        for step in self.steps:
            step(tensors, stream)

    def find(self, tensor: Any) -> int:
        """Return which of the tensors begins at this one's address."""
        address = tensor.data_ptr()
        for number, known in enumerate(self.tensors):
            if known.data_ptr() == address:
                return number
        raise _CannotNote


def of_matrices(a: torch.Tensor, b: torch.Tensor, **others: torch.Tensor) -> tuple | None:
    """Return the shape of a (M, K) · b (K, N), or None if there is no such product."""
    fit = a.ndim == b.ndim == 2 and a.shape[1] == b.shape[0]
    return (a.shape[0], b.shape[1]) if fit else None


def remembered(launcher: Callable | None = None, *, shape: Callable = of_matrices) -> Callable:
    """Decorate a launcher, `launcher(a, b, out=None, **options)`, to remember its plans.

    `shape` is a function of a, b and the options that are tensors; it returns the shape of a new
    out, or None if they do not fit. Its dtype is the option `out_dtype` if there is one, else that
    of a. The launcher runs as it is where it must: for tensors that are not on a GPU, inside
    `watch`, while `withheld`, and inside another launcher whose plan is being noted. A tensor's own
    GPU is made the current one.
    """
    if launcher is None:
        return partial(remembered, shape=shape)
    plans: dict[tuple, Plan] = {}
    _of_launchers.append(plans)

    @wraps(launcher)
    def remembering(a, b, out=None, *others, **options):
        named = {x: y for x, y in options.items() if isinstance(y, torch.Tensor)}
        plain = _plain(a, b, out, *named.values())
        if others or not plain or watched() or _noted.plan or _noted.pauses:
            return launcher(a, b, out, *others, **options)
        gpu = a.get_device()
        if gpu != torch.cuda.current_device():
            with torch.cuda.device(a.device):
                return remembering(a, b, out, **options)
        inputs = (a, b, *named.values())
        at = [x.data_ptr() for x in inputs]
        at_out = 0 if out is None else out.data_ptr()
        rest = {x: y for x, y in options.items() if x not in named} if named else options
        near = [x % ALIGNED == 0 for x in (*at, at_out)]
        first = [at.index(x) for x in at]  # of those that begin at one address
        kinds = tuple(map(_kind, inputs))
        key = kinds, out is None or _kind(out), *near, *first, *named, repr(rest)
        plan = plans.get(key)
        if plan is None:
            if len(plans) >= MOST_PLANS:
                plans.clear()
            plans[key] = plan = Plan()  # nobody runs it before it is complete
            try:
                made = _made(shape, a, b, named, options) if out is None else out
                return _note(plan, launcher, [a, b, made, *named.values()], options)
            except BaseException:
                plans.pop(key, None)
                raise
        if plan.steps is None:
            return launcher(a, b, out, **options)
        if out is None:
            size, dtype = plan.made
            out = a.new_empty(size, dtype=dtype)
        else:
            end = at_out + plan.spans[2]
            spans = plan.spans[:2] + plan.spans[3:]
            for start, span in zip(at, spans, strict=True):
                if at_out < start + span and start < end:
                    return launcher(a, b, out, **options)  # which says what is wrong
        plan.run([a, b, out, *named.values()], gpu)
        return out

    remembering.plans = plans
    return remembering


def _plain(a: Any, b: Any, out: Any, *others: Any) -> bool:
    """Are these tensors on a GPU, and of no subclass that could do something else?"""
    return (
        type(a) in TENSORS
        and type(b) in TENSORS
        and (out is None or type(out) in TENSORS)
        and a.is_cuda
        and a.layout is b.layout is torch.strided
        and all(type(x) in TENSORS and x.layout is torch.strided for x in others)
    )


def _made(
    shape: Callable, a: torch.Tensor, b: torch.Tensor, named: dict, options: dict
) -> torch.Tensor | None:
    """Return memory for what the launcher makes, or None if the launcher says what is wrong."""
    dtype = options.get("out_dtype")
    wanted = shape(a, b, **named)
    if wanted is None or not isinstance(dtype, torch.dtype | None):
        return None
    return a.new_empty(wanted, dtype=dtype or WIDE.get(a.dtype, a.dtype))


def _kind(x: torch.Tensor) -> tuple:
    return x.shape, x.stride(), x.dtype, x.get_device(), x.requires_grad, x.is_neg()


def _note(plan: Plan, launcher: Callable, tensors: list, options: dict) -> Any:
    """Run the launcher, and note in the plan what it does. Its exceptions pass through."""
    a, b, made, *_ = tensors
    draft = Plan(tensors.copy(), [])
    _noted.plan = draft
    try:
        result = launcher(a, b, made, **options)
    finally:
        _noted.plan = None
    if draft.steps and result is made:
        plan.spans = tuple(map(span_bytes, tensors))
        plan.made = made.shape, made.dtype
        plan.steps = draft.steps
    return result


@contextmanager
def paused() -> Iterator[None]:
    """Let every launcher run as it is."""
    _noted.pauses += 1
    try:
        yield
    finally:
        _noted.pauses -= 1


@contextmanager
def unnoted() -> Iterator[None]:
    """Keep what is launched in here out of the plan that is being noted."""
    before, _noted.plan = _noted.plan, None
    try:
        yield
    finally:
        _noted.plan = before


def forget() -> None:
    """Forget the plans of all launchers."""
    for plans in _of_launchers:
        plans.clear()


def note(make: Callable[[Plan], Callable]) -> None:
    """Add a step to the plan that is noted, if there is one.

    `make(plan)` returns the step. If the plan cannot find a tensor of its, it is not remembered.
    """
    plan = _noted.plan
    if plan is None or plan.steps is None:
        return
    try:
        plan.steps.append(make(plan))
    except _CannotNote:
        plan.steps = None


def every_time() -> None:
    """Let the launcher that runs now run in later calls too: it looks at numbers, not at kinds."""
    if _noted.plan is not None:
        _noted.plan.steps = None


def scratch(*shape: int, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """Return new memory, uninitialised, that a launcher uses until it returns."""
    made = torch.empty(shape, dtype=dtype, device=device)

    def make(plan: Plan) -> Callable:
        plan.tensors.append(made)
        return lambda tensors, _: tensors.append(torch.empty(shape, dtype=dtype, device=device))

    note(make)
    return made


def copied(to: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
    """Copy the source's elements, and return `to`."""
    to.copy_(source)

    def make(plan: Plan) -> Callable:
        views = [(plan.find(x), x.shape, x.stride()) for x in (to, source)]

        def step(tensors: list, _: int) -> None:
            there, here = (tensors[i].as_strided(shape, stride) for i, shape, stride in views)
            there.copy_(here)

        return step

    note(make)
    return to


def kernel(compiled: Any, grid: tuple, arguments: tuple) -> None:
    """Note that a compiled Triton kernel was launched with all its arguments in their order."""
    note(lambda plan: _launch(plan, compiled, grid, arguments))


def _launch(plan: Plan, compiled: Any, grid: tuple, arguments: tuple) -> Callable:
    if compiled is None or callable(grid):
        raise _CannotNote
    run, fixed, slots = compiled[(*grid, 1, 1)[:3]], list(arguments), []
    for place, argument in enumerate(arguments):
        based = getattr(argument, "base", None)
        tensor = based if isinstance(based, torch.Tensor) else argument
        if isinstance(tensor, torch.Tensor):
            # Of a descriptor everything but its tensor stays.
            parts = vars(argument) | {"base": None} if tensor is based else None
            slots.append((place, plan.find(tensor), type(argument), parts))
            fixed[place] = None

    def step(tensors: list, stream: int) -> None:
        filled = fixed.copy()
        for place, number, kind, parts in slots:
            tensor = tensors[number]
            if parts is not None:
                made = object.__new__(kind)
                made.__dict__.update(parts, base=tensor)
                tensor = made
            filled[place] = tensor
        run(*filled, stream=stream)

    return step
