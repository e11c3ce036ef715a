"""What the operators share: the dtypes that they take, checks, and questions about the call."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.autograd import forward_ad

HALVES = (torch.float16, torch.bfloat16)
DTYPES = {
    "cuda": (*HALVES, torch.float32),
    "cpu": (*HALVES, torch.float32, torch.float64),
    "meta": (*HALVES, torch.float32, torch.float64),  # shapes without numbers
}


def check_dense(name: str, tensor: Tensor) -> None:
    """Raise TypeError or ValueError unless the operator has a kernel for this kind of tensor."""
    if not isinstance(tensor, Tensor):
        raise TypeError(f"{name} must be a torch tensor, got {type(tensor).__name__}")
    if tensor.layout is not torch.strided or tensor.is_nested:
        kind = "nested" if tensor.is_nested else f"{tensor.layout} {tensor.dtype}"
        raise TypeError(f"{name} must be a dense tensor, got a {kind} tensor")
    if tensor.device.type not in DTYPES:
        raise ValueError(f"{name} lies on {tensor.device}; there are kernels for cuda and cpu")


def check_dims(a: Tensor, b: Tensor, dims: int) -> None:
    """Raise ValueError unless both have so many dimensions and lie on one device."""
    for name, tensor in (("a", a), ("b", b)):
        if tensor.dim() != dims:
            raise ValueError(f"{name} must be {dims}-D, got shape {tuple(tensor.shape)}")
    if a.device != b.device:
        raise ValueError(f"a lies on {a.device} and b on {b.device}; they must be on one device")


def check_dtypes(a: Tensor, b: Tensor) -> None:
    """Raise TypeError unless both have one dtype that the operators take on that device."""
    if a.dtype != b.dtype:
        raise TypeError(
            f"a {tuple(a.shape)} is {a.dtype} and b {tuple(b.shape)} is {b.dtype}; "
            "they must have one dtype"
        )
    known = DTYPES[a.device.type]
    if a.dtype not in known:
        names = ", ".join(str(dtype).removeprefix("torch.") for dtype in known)
        raise TypeError(f"a and b are {a.dtype}; on {a.device.type} the operator takes {names}")


def cast_all(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Return the tensors as autocast gives them to `torch.mm`: in its dtype, except for float64."""
    dtype = torch.get_autocast_dtype(tensors[0].device.type)
    return tuple(x.to(dtype) if x.dtype in DTYPES["cuda"] else x for x in tensors)


def differentiated_by_torch_func() -> bool:
    """Is this inside a function of `torch.func`, or of dual numbers? Their rules take longer."""
    return torch._C._are_functorch_transforms_active() or forward_ad._current_level >= 0
