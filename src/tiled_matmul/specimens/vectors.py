"""Accesses of 16 bytes a lane, which Numba has no word for: intrinsics of one PTX instruction each.

Each moves four float32 between a flat array and registers; `index` is the first one's and a
multiple of 4. Kernels that use them run on a GPU; importing this needs none.
"""

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from tiled_matmul.microscope.cuda import stands_for

LOAD = """{{
.reg .u64 address;
cvta.to.{space}.u64 address, $4;
ld.{space}.v4.f32 {{$0, $1, $2, $3}}, [address];
}}"""
STORE = """{{
.reg .u64 address;
cvta.to.{space}.u64 address, $0;
st.{space}.v4.f32 [address], {{$1, $2, $3, $4}};
}}"""


def _address(context, builder, array_type, array, index):
    data = context.make_array(array_type)(context, builder, array).data
    start = builder.ptrtoint(data, ir.IntType(64))
    return builder.add(start, builder.mul(index, ir.IntType(64)(4)))


def _load(array_type, space):
    def generate(context, builder, signature, arguments):
        array, index = arguments
        single = ir.FloatType()
        four = ir.LiteralStructType([single] * 4)
        asm = ir.InlineAsm(
            ir.FunctionType(four, [ir.IntType(64)]),
            LOAD.format(space=space),
            "=f,=f,=f,=f,l,~{memory}",
            side_effect=True,
        )
        loaded = builder.call(asm, [_address(context, builder, array_type, array, index)])
        return cgutils.pack_array(builder, cgutils.unpack_tuple(builder, loaded, 4))

    return types.UniTuple(types.float32, 4)(array_type, types.int64), generate


def _store(array_type, space):
    def generate(context, builder, signature, arguments):
        array, index, *values = arguments
        asm = ir.InlineAsm(
            ir.FunctionType(ir.VoidType(), [ir.IntType(64), *[ir.FloatType()] * 4]),
            STORE.format(space=space),
            "l,f,f,f,f,~{memory}",
            side_effect=True,
        )
        builder.call(asm, [_address(context, builder, array_type, array, index), *values])
        return context.get_dummy_value()

    return types.void(array_type, types.int64, *[types.float32] * 4), generate


@intrinsic
def load4_shared(typingctx, array, index):
    """Return array[index : index + 4] of shared memory as a tuple."""
    return _load(array, "shared")


@intrinsic
def store4_shared(typingctx, array, index, x, y, z, w):
    """Write x, y, z, w to array[index : index + 4] in shared memory."""
    return _store(array, "shared")


@intrinsic
def load4_global(typingctx, array, index):
    """Return array[index : index + 4] of global memory as a tuple."""
    return _load(array, "global")


@intrinsic
def store4_global(typingctx, array, index, x, y, z, w):
    """Write x, y, z, w to array[index : index + 4] in global memory."""
    return _store(array, "global")


# What the interpreter runs in their place.


@stands_for(load4_shared, "load")
@stands_for(load4_global, "load")
def _load4(access, array, index):
    return access.load(array, index, 4)


@stands_for(store4_shared, "store")
@stands_for(store4_global, "store")
def _store4(access, array, index, x, y, z, w):
    access.store(array, index, (x, y, z, w))
