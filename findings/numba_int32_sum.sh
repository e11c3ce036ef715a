#!/usr/bin/env bash
# Package: numba-cuda 0.30.4, numba 0.68.1, numpy 2.4.6
# Date: 2026-11-28
# Behaviour: In a kernel, the sum of two int32 is an int64: no index that is computed has 32 bits.
# Guess: As in NumPy and in CUDA C, int32 + int32 is int32, and an index takes one register.
# Seen:
#     NumPy: int32 + int32 is int32
#     kernel: int32 + int32 is added in 64 bits
#     kernel, cast back to int32: added in 32 bits

source "$(dirname "$0")/lib.sh"
install numba "numba-cuda[cu13]==0.30.4" numba==0.68.1 numpy==2.4.6
judge "$(run numba <<'END'
import re

import numpy as np
from numba import cuda, int32, int64


def plain(out, i, j):
    out[0] = i + j


def cast(out, i, j):
    out[0] = int32(i + j)


def width(kernel):
    """Return in how many bits the only sum of the kernel is added."""
    ptx, _ = cuda.compile_ptx(kernel, (int64[::1], int32, int32), cc=(9, 0))
    (bits,) = re.findall(r"\badd\.s(\d+)", ptx)
    return bits


print(f"NumPy: int32 + int32 is {(np.int32(1) + np.int32(1)).dtype}")
print(f"kernel: int32 + int32 is added in {width(plain)} bits")
print(f"kernel, cast back to int32: added in {width(cast)} bits")
END
)"
