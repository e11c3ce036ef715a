"""One matrix product: its sizes, its seeded inputs, and its least number of FLOPs and bytes."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

import numpy as np

ITEM_BYTES = {
    "float16": 2,
    "bfloat16": 2,
    "float32": 4,
    "float64": 8,
    "int32": 4,
    "int64": 8,
}
DTYPES = tuple(ITEM_BYTES)
LAYOUTS = ("nn", "tn", "nt", "tt")
INTEGER_RANGE = 4
CACHE_LINE_BYTES = 64
MAX_SIZE = 2**63 - 1  # the largest extent of an array


def aligned_empty(shape: tuple[int, ...], dtype: str | np.dtype) -> np.ndarray:
    """Return an uninitialised, row-major numpy array, aligned to a cache line of 64 bytes.

    numpy guarantees 16 bytes only, and the alignment changes the time of vector code.
    """
    dtype = np.dtype(dtype)
    size = math.prod(shape) * dtype.itemsize
    raw = np.empty(size + CACHE_LINE_BYTES, np.uint8)
    start = -raw.ctypes.data % CACHE_LINE_BYTES
    return raw[start : start + size].view(dtype).reshape(shape)


def as_layout(a: Any, b: Any, layout: str) -> tuple[Any, Any]:
    """Return (a, b) with the same values and shapes, stored in the given layout.

    `a` and `b` are numpy arrays or torch tensors. `layout` has one letter for each: "n" for
    row-major, "t" for column-major. An array that has its layout already is returned unchanged.
    Raises ValueError for an unknown layout.
    """
    if layout not in LAYOUTS:
        raise ValueError(f"layout must be one of {', '.join(LAYOUTS)}, got {layout!r}")
    return tuple(
        _row_major(array) if letter == "n" else _row_major(array.T).T
        for array, letter in zip((a, b), layout, strict=True)
    )


def _row_major(array: Any) -> Any:
    return np.ascontiguousarray(array) if isinstance(array, np.ndarray) else array.contiguous()


@dataclass(frozen=True)
class Problem:
    """C (M, N) = A (M, K) · B (K, N), all of one dtype.

    Raises ValueError for sizes that are not positive integers of 63 bits, or a dtype that is not in
    DTYPES.
    """

    m: int
    n: int
    k: int
    dtype: str = "float32"

    def __post_init__(self) -> None:
        for name in ("m", "n", "k"):
            size = getattr(self, name)
            if not isinstance(size, int) or isinstance(size, bool) or size < 1:
                raise ValueError(f"{name.upper()} must be a positive integer, got {size!r}")
            if size > MAX_SIZE:
                raise ValueError(f"{name.upper()} must be at most 2^63 - 1, got {size}")
        if self.dtype not in DTYPES:
            raise ValueError(f"dtype must be one of {', '.join(DTYPES)}, got {self.dtype!r}")

    @classmethod
    def square(cls, n: int, dtype: str = "float32") -> Problem:
        """Return the product of two n × n matrices."""
        return cls(n, n, n, dtype)

    @classmethod
    def parse(cls, text: str, dtype: str = "float32") -> Problem:
        """Return the problem that "4096x4096x4096" (M × N × K) describes.

        Raises ValueError, which quotes the text, if it has another form.
        """
        match = re.fullmatch(r"(\d+)x(\d+)x(\d+)", text.strip())
        if not match:
            raise ValueError(f"a shape is written MxNxK, such as 1024x512x256; got {text!r}")
        return cls(*(int(size) for size in match.groups()), dtype)

    @property
    def shape_text(self) -> str:
        return f"{self.m}x{self.n}x{self.k}"

    @property
    def flops(self) -> int:
        """The number of FLOPs, 2·M·N·K: one multiplication and one addition for each (i, j, k)."""
        return 2 * self.m * self.n * self.k

    @property
    def compulsory_bytes(self) -> int:
        """The least number of bytes: A and B are read once, C is written once."""
        elements = self.m * self.k + self.k * self.n + self.m * self.n
        return elements * ITEM_BYTES[self.dtype]

    @property
    def intensity(self) -> float:
        """FLOPs per compulsory byte."""
        return self.flops / self.compulsory_bytes

    @property
    def kind(self) -> str:
        """The `kind` of inputs that timings use: "normal", or "integers" for integer dtypes."""
        return "normal" if "float" in self.dtype else "integers"

    def inputs(self, seed: int = 0, kind: str = "normal", device: str = "numpy"):
        """Return new random inputs: a (M, K) and b (K, N), row-major, of this problem's dtype.

        `kind` "normal" draws from the standard normal distribution (float dtypes only);
        "integers" draws integers from -4 to 4, whose products sum without rounding. `device`
        "numpy" returns arrays; "cpu" and "cuda" return torch tensors on that device. One seed
        gives the same numbers on "numpy" and "cpu", but others on "cuda", where the GPU draws
        them. Raises ValueError for an unknown kind or device, for "normal" with an integer dtype,
        and for bfloat16 with "numpy", which lacks that type.
        """
        if kind not in ("normal", "integers"):
            raise ValueError(f'kind must be "normal" or "integers", got {kind!r}')
        if kind == "normal" and self.kind != "normal":
            raise ValueError(f'kind "normal" needs a float dtype, this problem is {self.dtype}')
        if device not in ("numpy", "cpu", "cuda"):
            raise ValueError(f'device must be "numpy", "cpu" or "cuda", got {device!r}')
        if device == "numpy" and self.dtype == "bfloat16":
            raise ValueError('numpy has no bfloat16; use the device "cpu" or "cuda"')
        shapes = ((self.m, self.k), (self.k, self.n))
        if device == "cuda":
            return self._cuda_inputs(shapes, seed, kind)
        rng = np.random.default_rng(seed)
        if kind == "normal":
            drawn = np.float64 if self.dtype == "float64" else np.float32
            arrays = [rng.standard_normal(shape, dtype=drawn) for shape in shapes]
        else:
            arrays = [rng.integers(-INTEGER_RANGE, INTEGER_RANGE + 1, shape) for shape in shapes]
        if device == "cpu":
            import torch

            dtype = getattr(torch, self.dtype)
            return tuple(torch.from_numpy(array).to(dtype) for array in arrays)
        a, b = (aligned_empty(shape, self.dtype) for shape in shapes)
        a[:], b[:] = arrays
        return a, b

    def _cuda_inputs(self, shapes, seed: int, kind: str):
        import torch

        generator = torch.Generator("cuda").manual_seed(seed)
        dtype = getattr(torch, self.dtype)
        if kind == "normal":
            drawn = torch.float64 if self.dtype == "float64" else torch.float32
            options = {"generator": generator, "device": "cuda", "dtype": drawn}
            draws = [torch.randn(shape, **options) for shape in shapes]
        else:
            low, high = -INTEGER_RANGE, INTEGER_RANGE + 1
            draws = [
                torch.randint(low, high, shape, generator=generator, device="cuda")
                for shape in shapes
            ]
        return tuple(draw.to(dtype) for draw in draws)
