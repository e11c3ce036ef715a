"""Help for the CPU rungs: the widest vectors, and memory aligned to cache lines."""

import numpy as np
from numba import types
from numba.extending import intrinsic, register_jitable

LINE = 64  # bytes in a cache line: a vector that straddles two of them is loaded twice


@intrinsic
def use_widest_vectors(typing_context):
    """Let the compiler use 512-bit vectors in the calling function, where the CPU has them.

    LLVM prefers 256 bits on most CPUs with AVX-512, because early ones lowered their clock for it;
    llvmlite has no public option to change that. Without AVX-512 this does nothing.
    """

    def generate(context, builder, signature, arguments):
        set.add(builder.function.attributes, '"prefer-vector-width"="512"')
        return context.get_dummy_value()

    return types.none(), generate


@register_jitable
def aligned_zeros(size, dtype):
    """Return `size` zeros aligned to a cache line; np.zeros guarantees only 16 bytes."""
    raw = np.zeros(size + LINE, dtype)
    start = -raw.ctypes.data % LINE // raw.itemsize
    return raw[start : start + size]
