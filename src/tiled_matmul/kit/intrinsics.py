"""The GPU's instructions that Numba has no word for, each as one function for kernels.

    load4(array, index)        ld.v4    four neighbours in one load of 16 bytes (float32, int32)
    store4(array, index, v)    st.v4    four neighbours in one store
    copy_async4(…)             cp.async.cg.shared.global, 16 bytes, past the registers and the L1
    copy_async(…)              cp.async.ca.shared.global, one element of 4 or 8 bytes
    commit_copies()            cp.async.commit_group
    wait_copies(n)             cp.async.wait_group n

An index is an int for a 1-D array and a pair for a 2-D one, and names the first of the four.
Source: NVIDIA, PTX ISA, "ld", "st" and "cp.async". Importing this needs no GPU; below the
intrinsics stands what the interpreter runs in their place.
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
        raise TypingError(f"{array} has {array.ndim} axes, the index {index} names {axes}")


def _pointer(context, builder, array_type, array, index_type, index):
    """Return the address of array[index]; indices count from the front, as unsigned ones do."""
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
    """Return a pointer's address within one of the address spaces, as 64 bits."""
    kind = ir.PointerType(pointer.type.pointee, space)
    return builder.ptrtoint(builder.addrspacecast(pointer, kind), I64)


def _vector(context, builder, array_type, pointer):
    single = context.get_data_type(array_type.dtype)
    return builder.bitcast(pointer, ir.VectorType(single, FOUR).as_pointer())


@intrinsic
def load4(typingctx, array, index):
    """Return array[index] and its three right neighbours as a tuple. The first's address has to
    be a multiple of 16 bytes. Four of 8 bytes each take two loads."""
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
    """Write the four `values`, a tuple, to array[index] and its three right neighbours."""
    _check(array, index)
    if not isinstance(values, types.UniTuple) or len(values) != FOUR:
        raise TypingError(f"four values of one type are stored, got {values}")

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
        raise TypingError(f"a copy keeps the type, got {source} into {target}")
    width = source.dtype.bitwidth // 8
    size = width * elements
    if size not in (4, 8, 16):
        raise TypingError(f"cp.async moves 4, 8 or 16 bytes, not {elements} of {source.dtype}")

    def generate(context, builder, signature, arguments):
        kinds = signature.args
        to = _pointer(context, builder, kinds[0], arguments[0], kinds[1], arguments[1])
        start = _pointer(context, builder, kinds[2], arguments[2], kinds[3], arguments[3])
        wanted = context.cast(builder, arguments[4], kinds[4], types.int32)
        asm = ir.InlineAsm(
            ir.FunctionType(ir.VoidType(), [I32, I64, I32]),
            COPY.format(cache="cg" if size == 16 else "ca", size=size),
            "r,l,r,~{memory}",
            side_effect=True,
        )
        # Shared memory is addressed with 32 bits, once the compiler knows that it is shared.
        target_address = builder.trunc(_address(builder, to, SHARED), I32)
        source_address = _address(builder, start, GLOBAL)
        builder.call(asm, [target_address, source_address, builder.mul(wanted, I32(width))])
        return context.get_dummy_value()

    return types.void(target, target_index, source, source_index, present), generate


@intrinsic
def copy_async4(typingctx, target, target_index, source, source_index, present):
    """Begin to copy four neighbours from `source` (global) to `target` (shared), 4 bytes each.

    Only the first `present` of them (0 to 4) are read, the rest become zero. Both addresses have
    to be multiples of 16 bytes. Needs compute capability 8.0.
    """
    return _copy(target, target_index, source, source_index, present, FOUR)


@intrinsic
def copy_async(typingctx, target, target_index, source, source_index, present):
    """Begin to copy one element, of 4 or 8 bytes; where `present` is 0 it becomes zero."""
    return _copy(target, target_index, source, source_index, present, 1)


def _statement(text):
    def generate(context, builder, signature, arguments):
        void = ir.FunctionType(ir.VoidType(), [])
        builder.call(ir.InlineAsm(void, text, "~{memory}", side_effect=True), [])
        return context.get_dummy_value()

    return generate


@intrinsic
def commit_copies(typingctx):
    """Close this thread's group of copies: all begun since the last call."""
    return types.void(), _statement("cp.async.commit_group;")


@intrinsic
def wait_copies(typingctx, newest):
    """Wait until all of this thread's groups but the `newest` (a constant) have arrived."""
    if not isinstance(newest, types.IntegerLiteral):
        raise TypingError(f"wait_copies wants a constant, got {newest}")
    text = f"cp.async.wait_group {newest.literal_value};"
    return types.void(newest), _statement(text)


# What the interpreter runs in their place. Four of 8 bytes each are two accesses of 16 bytes.


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
