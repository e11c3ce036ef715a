"""For the CPU's rungs: vectors as wide as they come, and memory on which they do not straddle."""

import numpy as np
from numba import types
from numba.extending import intrinsic, register_jitable

LINE = 64  # bytes in a cache line: a vector that straddles two of them is loaded twice


@intrinsic
def use_widest_vectors(typing_context):
    """Let the compiler use 512-bit vectors in the calling function, where the CPU has them.

    LLVM prefers 256 bits on most CPUs that have 512, because the first of them lowered their
    clock; llvmlite has no public way to say otherwise. Without AVX-512 this changes nothing.
    """

    def generate(context, builder, signature, arguments):
        set.add(builder.function.attributes, '"prefer-vector-width"="512"')
        return context.get_dummy_value()

    return types.none(), generate


@register_jitable
def aligned_zeros(size, dtype):
    """Return `size` zeros that begin on a cache line. np.zeros promises 16 bytes only."""
    raw = np.zeros(size + LINE, dtype)
    start = -raw.ctypes.data % LINE // raw.itemsize
    return raw[start : start + size]
