"""GPU instructions that Numba does not expose, each as one function to call from kernels.

    load4(array, index)        ld.v4    four neighbours in one load of 16 bytes (float32, int32)
    store4(array, index, v)    st.v4    four neighbours in one store
    copy_async4(…)             cp.async.cg.shared.global, 16 bytes, bypassing registers and L1
    copy_async(…)              cp.async.ca.shared.global, one element of 4 or 8 bytes
    commit_copies()            cp.async.commit_group
    wait_copies(n)             cp.async.wait_group n

The index of the first element is an int for a 1-D array and a pair for a 2-D one.
Source: NVIDIA, PTX ISA, "ld", "st" and "cp.async". Importing this needs no GPU. The functions that
the interpreter runs instead follow the intrinsics.
"""

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.extending import intrinsic

from tiled_matmul.microscope.cuda import stands_for

FOUR = 4
GLOBAL, SHARED = 1, 3  # address spaces of NVPTX
VECTOR_BYTES = 16
I32, I64 = ir.IntType(32), ir.IntType(64)


def _check(array, index):
    if not isinstance(array, types.Array) or array.layout != "C":
        raise TypingError(f"the array must be row-major, got {array}")
    axes = len(index) if isinstance(index, types.BaseTuple) else 1
    if axes != array.ndim:
        raise TypingError(f"{array} has {array.ndim} axes, but the index {index} has {axes}")


def _pointer(context, builder, array_type, array, index_type, index):
    """Return the address of array[index]; negative indices are not supported."""
    indices = [index]
    if isinstance(index_type, types.BaseTuple):
        indices = cgutils.unpack_tuple(builder, index, len(index_type))
    kinds = list(index_type) if isinstance(index_type, types.BaseTuple) else [index_type]
    wide = [
        context.cast(builder, one, kind, types.uint64)
        for one, kind in zip(indices, kinds, strict=True)
    ]
    view = context.make_array(array_type)(context, builder, array)
    return cgutils.get_item_pointer(
        context, builder, array_type, view, wide, wraparound=False, boundscheck=False
    )


def _address(builder, pointer, space):
    """Return a pointer's 64-bit address within an address space."""
    kind = ir.PointerType(pointer.type.pointee, space)
    return builder.ptrtoint(builder.addrspacecast(pointer, kind), I64)


def _vector(context, builder, array_type, pointer):
    single = context.get_data_type(array_type.dtype)
    return builder.bitcast(pointer, ir.VectorType(single, FOUR).as_pointer())


@intrinsic
def load4(typingctx, array, index):
    """Return array[index] and the next three elements as a tuple. The first address must be a
    multiple of 16 bytes. Four elements of 8 bytes take two loads."""
    _check(array, index)

    def generate(context, builder, signature, arguments):
        array_type, index_type = signature.args
        pointer = _pointer(context, builder, array_type, arguments[0], index_type, arguments[1])
        loaded = builder.load(_vector(context, builder, array_type, pointer), align=16)
        parts = [builder.extract_element(loaded, I32(lane)) for lane in range(FOUR)]
        return cgutils.pack_array(builder, parts)

    return types.UniTuple(array.dtype, FOUR)(array, index), generate


@intrinsic
def store4(typingctx, array, index, values):
    """Store the tuple of four `values` to array[index] and the next three elements."""
    _check(array, index)
    if not isinstance(values, types.UniTuple) or len(values) != FOUR:
        raise TypingError(f"store4 takes a tuple of four values of one type, got {values}")

    def generate(context, builder, signature, arguments):
        array_type, index_type, value_type = signature.args
        pointer = _pointer(context, builder, array_type, arguments[0], index_type, arguments[1])
        vector = ir.VectorType(context.get_data_type(array_type.dtype), FOUR)(ir.Undefined)
        for lane, value in enumerate(cgutils.unpack_tuple(builder, arguments[2], FOUR)):
            given = context.cast(builder, value, value_type.dtype, array_type.dtype)
            vector = builder.insert_element(vector, given, I32(lane))
        builder.store(vector, _vector(context, builder, array_type, pointer), align=16)
        return context.get_dummy_value()

    return types.void(array, index, values), generate


COPY = "cp.async.{cache}.shared.global [$0], [$1], {size}, $2;"


def _copy(target, target_index, source, source_index, present, elements):
    _check(target, target_index)
    _check(source, source_index)
    if target.dtype != source.dtype:
        raise TypingError(f"a copy cannot change the dtype, got {source} into {target}")
    width = source.dtype.bitwidth // 8
    size = width * elements
    if size not in (4, 8, 16):
        raise TypingError(f"cp.async moves 4, 8 or 16 bytes, not {elements} of {source.dtype}")

    def generate(context, builder, signature, arguments):
        kinds = signature.args
        target_pointer = _pointer(context, builder, kinds[0], arguments[0], kinds[1], arguments[1])
        source_pointer = _pointer(context, builder, kinds[2], arguments[2], kinds[3], arguments[3])
        count = context.cast(builder, arguments[4], kinds[4], types.int32)
        asm = ir.InlineAsm(
            ir.FunctionType(ir.VoidType(), [I32, I64, I32]),
            COPY.format(cache="cg" if size == 16 else "ca", size=size),
            "r,l,r,~{memory}",
            side_effect=True,
        )
        # An address within the shared address space has 32 bits.
        target_address = builder.trunc(_address(builder, target_pointer, SHARED), I32)
        source_address = _address(builder, source_pointer, GLOBAL)
        builder.call(asm, [target_address, source_address, builder.mul(count, I32(width))])
        return context.get_dummy_value()

    return types.void(target, target_index, source, source_index, present), generate


@intrinsic
def copy_async4(typingctx, target, target_index, source, source_index, present):
    """Start copying four adjacent 4-byte elements from `source` (global) to `target` (shared).

    Only the first `present` of them (0 to 4) are read; the rest become zero. Both addresses must be
    multiples of 16 bytes. Needs compute capability 8.0.
    """
    return _copy(target, target_index, source, source_index, present, FOUR)


@intrinsic
def copy_async(typingctx, target, target_index, source, source_index, present):
    """Start copying one element of 4 or 8 bytes; if `present` is 0, store a zero instead."""
    return _copy(target, target_index, source, source_index, present, 1)


def _statement(text):
    def generate(context, builder, signature, arguments):
        void = ir.FunctionType(ir.VoidType(), [])
        builder.call(ir.InlineAsm(void, text, "~{memory}", side_effect=True), [])
        return context.get_dummy_value()

    return generate


@intrinsic
def commit_copies(typingctx):
    """Commit all copies that this thread has started since the last call as one group."""
    return types.void(), _statement("cp.async.commit_group;")


@intrinsic
def wait_copies(typingctx, newest):
    """Wait until at most the last `newest` (a constant) groups of this thread are in flight."""
    if not isinstance(newest, types.IntegerLiteral):
        raise TypingError(f"wait_copies takes a constant, got {newest}")
    text = f"cp.async.wait_group {newest.literal_value};"
    return types.void(newest), _statement(text)


# The interpreter's versions. Four elements of 8 bytes take two accesses of 16 bytes.


@stands_for(load4, "load", "load")
def _load4(first, second, array, index):
    if array.itemsize * FOUR <= VECTOR_BYTES:
        return first.load(array, index, FOUR)
    return first.load(array, index, 2) + second.load(array, _beyond(index, 2), 2)


@stands_for(store4, "store", "store")
def _store4(first, second, array, index, values):
    if array.itemsize * FOUR <= VECTOR_BYTES:
        first.store(array, index, values)
    else:
        first.store(array, index, values[:2])
        second.store(array, _beyond(index, 2), values[2:])


def _beyond(index, count):
    return (*index[:-1], index[-1] + count) if isinstance(index, tuple) else index + count


@stands_for(copy_async4, "copy", arrays=(2, 0))
def _copy_async4(copy, target, target_index, source, source_index, present):
    copy.begin(target, target_index, source, source_index, FOUR, present)


@stands_for(copy_async, "copy", arrays=(2, 0))
def _copy_async(copy, target, target_index, source, source_index, present):
    copy.begin(target, target_index, source, source_index, 1, present)


@stands_for(commit_copies, "copies")
def _commit_copies(copies):
    copies.commit()


@stands_for(wait_copies, "copies")
def _wait_copies(copies, newest):
    copies.wait(newest)
