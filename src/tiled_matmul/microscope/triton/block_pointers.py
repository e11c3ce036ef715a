"""Block pointers for a Triton that has none: 3.9 removed them.

A block pointer describes a tile of a matrix: where the matrix begins, its shape and strides, and
the tile's corner and shape. `tl.advance` returns one with another corner. A load or store expands
it to what every Triton has: a tile of plain pointers, and a mask for the axes in `boundary_check`.
Shapes, strides and corners are 64-bit integers, as in Triton's own block pointers.

Importing `tiled_matmul.microscope.triton`, which every rung, trace and exercise in Triton does,
puts these functions into `triton.language` if that lacks them, and changes nothing otherwise. As
with Triton's own, compiled code chooses between two by an `if` statement, not by `x if … else y`.
Triton's cache on disk does not notice changes in this file: `TRITON_ALWAYS_COMPILE=1` does.
"""

import triton.language as tl
from triton.language import core
from triton.language.core import constexpr, tensor
from triton.language.core import tuple as Axes

PADDING = {"": None, "zero": 0.0, "nan": float("nan")}
MUST_USE = "tl.advance moves nothing: it returns the block pointer that has moved."


@core._aggregate
class BlockPointer:
    """A tile of a matrix. The compiler carries it through loops and calls field by field."""

    base: tensor
    shape: Axes
    strides: Axes
    offsets: Axes
    block_shape: constexpr

    def __init__(self, base, shape, strides, offsets, block_shape):
        self.base, self.block_shape = base, block_shape
        self.shape, self.strides, self.offsets = shape, strides, offsets

    def advance(self, offsets, _semantic=None):
        # The interpreter passes no _semantic to methods; there, names in tl bring their own.
        return tl.advance(self, offsets, _semantic=_semantic)

    def store(self, value, *rest, _semantic=None, **named):
        return tl.store(self, value, *rest, _semantic=_semantic, **named)


# As with Triton's own, a pointer to a tile: `acc.to(tile.dtype.element_ty)` is a usual cast.
def dtype_of(pointer):
    tile = tl.block_type(pointer.base.dtype.element_ty, list(pointer.block_shape.value))
    return tl.pointer_type(tile)


BlockPointer.dtype = property(dtype_of)


@core.builtin
def make_block_ptr(base, shape, strides, offsets, block_shape, order, _semantic=None):
    """Return a block pointer. `order` must be a permutation of the axes, and is not used."""
    if not base.type.is_ptr():
        raise ValueError(f"base must be a pointer, got {base.type}")
    lists = [listed(values) for values in (shape, strides, offsets, block_shape, order)]
    lengths = [len(values) for values in lists]
    if len(set(lengths)) > 1:
        raise ValueError(
            "shape, strides, offsets, block_shape and order must have the same length, "
            f"got {', '.join(map(str, lengths))}"
        )
    if sorted(lists[4]) != list(range(lengths[0])):
        raise ValueError(f"order must be a permutation of 0 to {lengths[0] - 1}, got {lists[4]}")
    if not all(isinstance(size, int) for size in lists[3]):
        raise ValueError(f"block_shape must hold constants, got {lists[3]}")
    if base.type.element_ty == tl.int1:  # a bool takes a byte
        base = _semantic.cast(base, tl.pointer_type(tl.int8, base.type.address_space))
    tl.block_type(base.type.element_ty, lists[3])  # which checks the sizes
    scalars = [Axes([wide(value, _semantic) for value in values]) for values in lists[:3]]
    return BlockPointer(base, *scalars, constexpr(tuple(lists[3])))


@core.must_use_result(MUST_USE)
@core.builtin
def advance(base, offsets, _semantic=None):
    """Return the block pointer moved by `offsets`, one number for each axis."""
    if not isinstance(base, BlockPointer):
        raise ValueError(f"tl.advance moves a block pointer, got {base.type}")
    steps = [wide(step, _semantic) for step in listed(offsets)]
    if len(steps) != len(base.offsets):
        raise ValueError(f"a block pointer of {len(base.offsets)} axes moves by {len(steps)}")
    moved = [_semantic.add(x, step, False) for x, step in zip(base.offsets, steps, strict=True)]
    return BlockPointer(base.base, base.shape, base.strides, Axes(moved), base.block_shape)


@core.builtin
def load(
    pointer, mask=None, other=None, boundary_check=(), padding_option="", cache_modifier="",
    eviction_policy="", volatile=False, _semantic=None,
):  # fmt: skip
    """Load a tile. Elements outside, along the axes in `boundary_check`, become the padding."""
    padding = core._unwrap_if_constexpr(padding_option) or ""
    if not isinstance(pointer, BlockPointer):
        need_no_check(boundary_check, padding)
    else:
        need_no_mask(mask, other)
        pointer, mask = elements(pointer, boundary_check, _semantic)
        other = padding_of(padding, pointer.dtype.element_ty)
        other = None if mask is None else other
    hints = {"cache_modifier": cache_modifier, "eviction_policy": eviction_policy}
    return core.load(pointer, mask, other, volatile=volatile, **hints, _semantic=_semantic)


@core.builtin
def store(
    pointer, value, mask=None, boundary_check=(), cache_modifier="", eviction_policy="",
    _semantic=None,
):  # fmt: skip
    """Store a tile, without the elements outside along the axes in `boundary_check`."""
    if not isinstance(pointer, BlockPointer):
        need_no_check(boundary_check)
    else:
        need_no_mask(mask)
        value = fitting(_semantic.to_tensor(value), pointer)
        pointer, mask = elements(pointer, boundary_check, _semantic)
    hints = {"cache_modifier": cache_modifier, "eviction_policy": eviction_policy}
    return core.store(pointer, value, mask, **hints, _semantic=_semantic)


def elements(pointer, boundary_check, semantic):
    """Return (pointers to the tile's elements, the mask of those inside or None)."""
    checked = axes(boundary_check, len(pointer.offsets))
    places, mask = pointer.base, None
    for axis, size in enumerate(pointer.block_shape.value):
        index = semantic.cast(semantic.arange(0, size), tl.int64)
        index = semantic.add(index, pointer.offsets[axis], False)
        for other in range(len(pointer.offsets)):
            index = index if other == axis else semantic.expand_dims(index, other)
        places = semantic.add(places, semantic.mul(index, pointer.strides[axis], False), False)
        if axis in checked:
            after_start = semantic.greater_equal(index, semantic.to_tensor(0))
            before_end = semantic.less_than(index, pointer.shape[axis])
            inside = semantic.and_(after_start, before_end)
            mask = inside if mask is None else semantic.and_(mask, inside)
    return places, mask


def axes(boundary_check, ndim: int) -> list[int]:
    """Return the axes to check. Raises ValueError unless they exist, each once."""
    checked = listed(boundary_check)
    if not set(checked) <= set(range(ndim)) or len(set(checked)) < len(checked):
        raise ValueError(f"boundary_check must name axes from 0 to {ndim - 1}, got {checked}")
    return checked


def padding_of(padding: str, dtype) -> float | None:
    """Return the number for elements outside; None leaves them undefined."""
    if padding not in PADDING:
        raise ValueError(f'padding_option must be "", "zero" or "nan", got {padding!r}')
    if padding == "nan" and dtype.is_int():
        raise ValueError(f'padding_option="nan" does not suit {dtype}')
    return PADDING[padding]


def fitting(value, pointer):
    """Return a value to store. Raises ValueError for another shape or type than the tile's."""
    shape, dtype = list(pointer.block_shape.value), pointer.base.type.element_ty
    if value.type.is_block() and listed(value.shape) != shape:
        raise ValueError(f"a value of shape {listed(value.shape)} for a tile of {shape}")
    if value.dtype != dtype:
        raise ValueError(f"a value of {value.dtype} for a tile of {dtype}: convert it with .to")
    return value


def need_no_check(boundary_check, padding: str = "") -> None:
    """Raise ValueError if plain pointers come with what only a block pointer takes."""
    if listed(boundary_check) or padding:
        raise ValueError(
            "only a block pointer knows its matrix and takes boundary_check and padding_option; "
            "plain pointers take mask and other"
        )


def need_no_mask(*options) -> None:
    """Raise ValueError if a block pointer comes with what only plain pointers take."""
    if any(core._unwrap_if_constexpr(option) is not None for option in options):
        raise ValueError("a block pointer takes boundary_check, not mask or other")


def listed(values) -> list:
    """Return a tuple, a list or one value as a list of tensors and Python's constants."""
    values = core._unwrap_if_constexpr(values)
    values = values if isinstance(values, list | tuple | Axes) else [values]
    return [core._unwrap_if_constexpr(value) for value in values]


def wide(value, semantic):
    """Return a scalar as a 64-bit integer."""
    value = semantic.to_tensor(value)
    if value.type.is_block() or not value.dtype.is_int():
        raise ValueError(f"a block pointer is made of integers, got {value.type}")
    return semantic.cast(value, tl.int64)


def supply() -> None:
    """Put block pointers into `triton.language` if it has none."""
    if not hasattr(tl, "advance"):
        tl.make_block_ptr, tl.advance, tl.load, tl.store = make_block_ptr, advance, load, store
