"""Make torch's matmul as exact as the rungs, whatever its switches say, and put them back.

PyTorch has two generations of switches. `torch.set_float32_matmul_precision` and
`torch.backends.cuda.matmul.allow_tf32` are older. The newer `fp32_precision` exists for an
operator, for all of a backend, and for everything; "none" takes over what the next wider one says.
The older setters change the newer values as well, but not the other way round, and the older
getters raise where the two contradict each other. So the newer values are read first, and set last.

The newer values are read and set by the functions behind `torch.backends`, because the setter of
`torch.backends.mkldnn.fp32_precision` changes the switch for everything (seen in torch 2.13).
Source: PyTorch, "Numerical accuracy", and `torch.backends`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

REDUCTIONS = ("allow_fp16_reduced_precision_reduction", "allow_bf16_reduced_precision_reduction")
# From the widest newer switch that matmul goes by to its own.
SWITCHES = (
    (("generic", "all"), ("cuda", "all"), ("cuda", "matmul")),
    (("generic", "all"), ("mkldnn", "all"), ("mkldnn", "matmul")),
)


@contextlib.contextmanager
def exact_sums() -> Iterator[None]:
    """Make torch's matmul sum as the rungs do: no TF32, and 16-bit floats summed in float32."""
    import torch

    matmul = torch.backends.cuda.matmul
    reductions = {name: _reduction(name) for name in REDUCTIONS}
    own = [_own_value(switches) for switches in SWITCHES]
    older = None
    try:
        for *_, switch in SWITCHES:
            torch._C._set_fp32_precision_setter(*switch, "ieee")  # so that the next cannot raise
        older = torch.get_float32_matmul_precision()
        torch.set_float32_matmul_precision("highest")
        for name in REDUCTIONS:
            setattr(matmul, name, False)
        yield
    finally:
        for name, value in reductions.items():
            setattr(matmul, name, value)
        if older is not None:
            torch.set_float32_matmul_precision(older)
        for (*_, switch), value in zip(SWITCHES, own, strict=True):
            torch._C._set_fp32_precision_setter(*switch, value)


def _reduction(name: str) -> bool | tuple[bool, bool]:
    """Return what sets a switch as it is now; newer versions hold a second one, for split-K."""
    from torch.backends.cuda import matmul

    split_k = getattr(matmul, f"{name}_split_k", None)
    value = getattr(matmul, name)
    return value if split_k is None else (value, split_k)


def _own_value(switches: tuple[tuple[str, str], ...]) -> str:
    """Return the last switch's own value, which is "none" where it takes over a wider one's.

    A getter says what holds in the end. So the next wider switch is changed for a moment.
    """
    from torch._C import _get_fp32_precision_getter as get
    from torch._C import _set_fp32_precision_setter as put

    *wider, switch = switches
    if not wider:
        return get(*switch)
    says, before = get(*switch), _own_value(tuple(wider))
    put(*wider[-1], "tf32" if says != "tf32" else "ieee")
    own = says if get(*switch) == says else "none"
    put(*wider[-1], before)
    return own
