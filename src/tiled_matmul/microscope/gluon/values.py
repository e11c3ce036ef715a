"""What a kernel in Gluon holds: tiles in registers, descriptors, dtypes, and shares of a cluster.

Each block of a cluster holds its share of a tile, and `shape` is that of the whole tile, as in
Gluon. A layout's `cga_layout` has a basis for each bit of a block's number: how many shares further
that bit moves along each dimension. All zeros mean that the blocks hold the same.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

TORCH = {"fp16": "float16", "bf16": "bfloat16", "fp32": "float32", "fp8e4nv": "float8_e4m3fn"}
TORCH |= {"fp8e5": "float8_e5m2", "fp64": "float64", "int32": "int32", "int64": "int64"}


def torch_dtype(dtype: Any) -> torch.dtype:
    """Return torch's dtype of one of Gluon's. Raises TypeError for any other."""
    name = TORCH.get(getattr(dtype, "name", str(dtype)))
    if name is None:
        raise TypeError(f"the interpreter knows no tiles of {dtype}")
    return getattr(torch, name)


@dataclass(frozen=True)
class Shares:
    """How the blocks of a cluster share a tile: one basis for each bit of a block's number."""

    bases: tuple[tuple[int, ...], ...]
    rank: int

    @property
    def parts(self) -> tuple[int, ...]:
        """How many shares a tile has along each dimension."""
        most = [max((basis[d] for basis in self.bases), default=0) for d in range(self.rank)]
        return tuple(2 * x if x else 1 for x in most)

    def local(self, shape: Sequence[int]) -> tuple[int, ...]:
        """Return the shape of a share. Raises ValueError if it would not be whole."""
        parts = (1,) * (len(shape) - self.rank) + self.parts
        if any(size % part for size, part in zip(shape, parts, strict=True)):
            raise ValueError(f"a tile of {list(shape)} has no {list(self.parts)} equal shares")
        return tuple(size // part for size, part in zip(shape, parts, strict=True))

    def place(self, block: int) -> tuple[int, ...]:
        """Return how many shares a block's is from the first, along each dimension."""
        own = [basis for bit, basis in enumerate(self.bases) if block >> bit & 1]
        return tuple(sum(basis[d] for basis in own) for d in range(self.rank))

    def leader(self, block: int) -> int:
        """Return the first block that holds the same as this one."""
        same = sum(1 << bit for bit, basis in enumerate(self.bases) if not any(basis))
        return block & ~same

    def group(self, block: int) -> list[int]:
        """Return the blocks that hold the same as this one, in their order."""
        everyone = range(2 ** len(self.bases))
        return [x for x in everyone if self.leader(x) == self.leader(block)]


def shares(layout: Any, rank: int, blocks: int) -> Shares:
    """Return the Shares of a layout, or of its parents, for a cluster of so many blocks.

    Raises ValueError if the layout does not say how so many blocks share a tile.
    """
    bases = tuple(tuple(map(int, basis)) for basis in getattr(layout, "cga_layout", None) or ())
    if 2 ** len(bases) != blocks:
        raise ValueError(
            f"a launch with num_ctas={blocks} needs layouts with a cga_layout of "
            f"{blocks.bit_length() - 1} bases, got {[list(x) for x in bases]}"
        )
    return Shares(bases, rank)


class Tile:
    """A block's share of a tile in registers; `shape` and `dtype` are the whole tile's."""

    def __init__(self, data: torch.Tensor, shape: Sequence[int], dtype: Any) -> None:
        self._data, self.shape, self.dtype = data, list(shape), dtype

    @property
    def data(self) -> torch.Tensor:
        """The share's elements, at this point of the kernel."""
        return self._data

    def to(self, dtype: Any) -> Tile:
        """Return the tile in another dtype, rounded to nearest even."""
        return Tile(self.data.to(torch_dtype(dtype)), self.shape, dtype)

    def reshape(self, *shape: Any) -> Tile:
        """Return the same elements in another shape; the first dimension may be shared."""
        new = list(shape[0]) if isinstance(shape[0], tuple | list) else list(shape)
        if math.prod(new) != math.prod(self.shape):
            raise ValueError(f"a tile of {self.shape} has no shape {new}")
        local = list(new)
        if list(self.data.shape) != self.shape:
            if new[0] != self.shape[0] or list(self.data.shape[1:]) != self.shape[1:]:
                raise ValueError(
                    f"the interpreter reshapes no tile of {self.shape} to {new} whose columns, or "
                    "changed rows, several blocks share"
                )
            local[0] = self.data.shape[0]
        return Tile(self.data.reshape(local), new, self.dtype)

    def permute(self, *order: Any) -> Tile:
        """Return the tile with its dimensions in another order."""
        new = list(order[0]) if isinstance(order[0], tuple | list) else list(order)
        return Tile(self.data.permute(new), [self.shape[i] for i in new], self.dtype)

    def split(self) -> tuple[Tile, Tile]:
        """Return the two halves along the last dimension, which has the size 2."""
        if self.shape[-1] != 2:
            raise ValueError(f"split takes a last dimension of 2, got a tile of {self.shape}")
        return tuple(Tile(self.data[..., i], self.shape[:-1], self.dtype) for i in (0, 1))

    def __getitem__(self, index: Any) -> Tile:
        """Return the tile with new dimensions of size 1, as `tile[:, None]` asks for them."""
        parts = index if isinstance(index, tuple) else (index,)
        if any(part is not None and part != slice(None) for part in parts):
            raise IndexError(f"a tile in registers takes : and None as an index, got {index!r}")
        self._own("indexes")
        data = self.data[index]
        return Tile(data, data.shape, self.dtype)

    def reduced(self, operation: Callable, axis: int) -> Tile:
        """Return the sum, or another reduction, along an axis."""
        self._own("reduces")
        data = operation(self.data, axis)
        return Tile(data, data.shape, self.dtype)

    def _own(self, verb: str) -> None:
        if list(self.data.shape) != self.shape:
            raise ValueError(f"the interpreter {verb} no tile of {self.shape} that blocks share")

    def _with(self, other: Any, operation: Callable, turned: bool = False) -> Tile:
        right = other.data if isinstance(other, Tile) else other
        pair = (right, self.data) if turned else (self.data, right)
        data = operation(*pair)
        shared = list(self.data.shape) != self.shape
        return Tile(data, self.shape if shared else data.shape, self.dtype)

    def __neg__(self) -> Tile:
        return self * -1

    def __hash__(self) -> int:
        return id(self)

    def __add__(self, other: Any) -> Tile:
        return self._with(other, operator.add)

    def __sub__(self, other: Any) -> Tile:
        return self._with(other, operator.sub)

    def __mul__(self, other: Any) -> Tile:
        return self._with(other, operator.mul)

    def __truediv__(self, other: Any) -> Tile:
        return self._with(other, operator.truediv)

    def __floordiv__(self, other: Any) -> Tile:
        return self._with(other, operator.floordiv)

    def __mod__(self, other: Any) -> Tile:
        return self._with(other, operator.mod)

    def __lt__(self, other: Any) -> Tile:
        return self._with(other, operator.lt)

    def __le__(self, other: Any) -> Tile:
        return self._with(other, operator.le)

    def __gt__(self, other: Any) -> Tile:
        return self._with(other, operator.gt)

    def __ge__(self, other: Any) -> Tile:
        return self._with(other, operator.ge)

    def __eq__(self, other: Any) -> Tile:
        return self._with(other, operator.eq)

    def __ne__(self, other: Any) -> Tile:
        return self._with(other, operator.ne)

    def __and__(self, other: Any) -> Tile:
        return self._with(other, operator.and_)

    def __or__(self, other: Any) -> Tile:
        return self._with(other, operator.or_)

    def __rsub__(self, other: Any) -> Tile:
        return self._with(other, operator.sub, turned=True)

    def __rtruediv__(self, other: Any) -> Tile:
        return self._with(other, operator.truediv, turned=True)

    __radd__, __rmul__ = __add__, __mul__

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"the interpreter of Gluon knows no `{name}` of a tile")


class Pointer:
    """A pointer to an element of a tensor, or a tile of pointers."""

    def __init__(self, name: str, tensor: torch.Tensor, at: Any = 0) -> None:
        from triton.experimental.gluon import language as gl

        self.name, self.tensor, self.at = name, tensor, at
        self.element_ty = getattr(gl, _gluon_name(tensor.dtype))

    @property
    def dtype(self) -> Pointer:
        """The pointer's type: it has the `element_ty`."""
        return self

    @property
    def shape(self) -> list[int]:
        """The shape of the tile of pointers; [] of one."""
        return self.at.shape if isinstance(self.at, Tile) else []

    def __add__(self, other: Any) -> Pointer:
        return Pointer(self.name, self.tensor, self.at + other)

    __radd__ = __add__

    def load(self, mask: Any, other: Any) -> Tile | Any:
        """Return the elements; where the mask is false, `other`, or an undefined NaN, or -1."""
        at, there = self._places(mask)
        kind = self.tensor.dtype
        undefined = math.nan if kind.is_floating_point else -1
        data = torch.full(at.shape, undefined, dtype=kind)
        if other is not None:
            data[:] = other.data if isinstance(other, Tile) else other
        data[there] = self._memory()[at[there]].to(data.device)
        return Tile(data, data.shape, self.element_ty) if self.shape else data.item()

    def store(self, value: Any, mask: Any) -> None:
        """Store elements where the mask is true."""
        at, there = self._places(mask)
        data = value.data if isinstance(value, Tile) else torch.as_tensor(value)
        data = data.to(self.tensor.dtype).expand(at.shape)
        self._memory()[at[there]] = data[there].to(self.tensor.device)

    def _memory(self) -> torch.Tensor:
        """Return all elements from the tensor's first one to the end of its storage."""
        kept = self.tensor.untyped_storage().nbytes() // self.tensor.element_size()
        start = self.tensor.storage_offset()
        return torch.as_strided(self.tensor, (kept - start,), (1,), start)

    def _places(self, mask: Any) -> tuple[torch.Tensor, torch.Tensor]:
        at = self.at.data if isinstance(self.at, Tile) else torch.tensor(int(self.at))
        there = mask.data if isinstance(mask, Tile) else torch.tensor(mask is None or bool(mask))
        at, there = torch.broadcast_tensors(at.long(), there)
        size = self._memory().numel()
        outside = at[there & ((at < 0) | (at >= size))]
        if outside.numel():
            raise IndexError(
                f"{self.name} has {size:,} elements from where it points to, and element "
                f"{int(outside[0]):,} is accessed"
            )
        return at, there


class Descriptor:
    """A descriptor: a matrix in global memory, and the tile that one copy moves."""

    def __init__(self, name: str, given: Any, blocks: int) -> None:
        base = given.base
        shape, strides = tuple(given.shape), tuple(given.strides)
        self.memory = torch.as_strided(base, shape, strides, base.storage_offset())
        self.name, self.layout = name, given.layout
        self.shape, self.strides = list(shape), list(strides)
        self.block_shape = list(map(int, given.block_shape))
        self.shares = shares(given.layout, len(self.block_shape), blocks)
        self.local = self.shares.local(self.block_shape)
        from triton.experimental.gluon import language as gl

        self.dtype = getattr(gl, _gluon_name(base.dtype))

    @property
    def nbytes_per_cta(self) -> int:
        """The bytes of a block's share of the tile."""
        return math.prod(self.local) * self.memory.element_size()

    def corner(self, coordinates: Sequence[int], block: int) -> list[int]:
        """Return where the share of a block begins, for a tile that begins at `coordinates`."""
        steps = zip(coordinates, self.shares.place(block), self.local, strict=True)
        return [int(at) + place * size for at, place, size in steps]

    def read(self, corner: Sequence[int]) -> torch.Tensor:
        """Return a share; elements outside the matrix are zero."""
        tile = torch.zeros(self.local, dtype=self.memory.dtype)
        inside, target = self._inside(corner)
        tile[target] = self.memory[inside]
        return tile

    def write(self, corner: Sequence[int], tile: torch.Tensor) -> None:
        """Store a share; elements outside the matrix are left out."""
        inside, source = self._inside(corner)
        self.memory[inside] = tile[source]

    def inside(self, corner: Sequence[int]) -> tuple[slice, ...]:
        """Return which elements of the matrix a share has, along each dimension."""
        ranges = zip(corner, self.local, self.shape, strict=True)
        first = [(min(max(at, 0), edge), min(at + size, edge)) for at, size, edge in ranges]
        return tuple(slice(begin, max(begin, end)) for begin, end in first)

    def _inside(self, corner: Sequence[int]) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
        there = self.inside(corner)
        moved = zip(there, corner, strict=True)
        return there, tuple(slice(x.start - at, x.stop - at) for x, at in moved)


def _gluon_name(dtype: torch.dtype) -> str:
    names = {torch.float8_e4m3fn: "float8e4nv", torch.float8_e5m2: "float8e5"}
    return names.get(dtype) or str(dtype).removeprefix("torch.")
