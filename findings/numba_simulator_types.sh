#!/usr/bin/env bash
# Package: numba-cuda 0.30.4, numba 0.68.1, numpy 2.4.6
# Date: 2026-11-27
# Behaviour: Numba's CUDA simulator computes with NumPy's types, compiled code with Numba's. A sum
#     that begins with 0.0 is float32 in the simulator and float64 on a GPU.
# Guess: The simulator is slow, and gives what the GPU gives.
# Seen:
#     compiled for sm_90: add.f64, mul.wide.s32
#     simulator: the sum is float32, 65536 * 65536 = 0

source "$(dirname "$0")/lib.sh"
install numba "numba-cuda[cu13]==0.30.4" numba==0.68.1 numpy==2.4.6
compiled=$(run numba <<'END'
import re

from numba import cuda, float32, float64, int32, int64


def kernel(x, total, i, square):
    s = 0.0
    for k in range(x.shape[0]):
        s += x[k]
    total[0] = s
    square[0] = i[0] * i[0]


arguments = (float32[::1], float64[::1], int32[::1], int64[::1])
ptx, _ = cuda.compile_ptx(kernel, arguments, cc=(9, 0))
print(f"{re.search(r'add.*f..', ptx)[0].split()[0]}, {re.search(r'mul.wide.s32', ptx)[0]}")
END
)
simulated=$(NUMBA_ENABLE_CUDASIM=1 run numba <<'END'
import numpy as np
from numba import cuda

kinds = []


@cuda.jit
def kernel(x, total, i, square):
    s = 0.0
    for k in range(x.shape[0]):
        s += x[k]
    kinds.append(type(s).__name__)
    total[0] = s
    square[0] = i[0] * i[0]


x, i = np.full(100, 0.1, np.float32), np.array([65536], np.int32)
total, square = np.zeros(1), np.zeros(1, np.int64)
kernel[1, 1](x, total, i, square)
print(f"the sum is {kinds[0]}, 65536 * 65536 = {square[0]}")
END
)
judge "compiled for sm_90: $compiled
simulator: $simulated"
