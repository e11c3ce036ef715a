#!/usr/bin/env bash
# Package: numba-cuda 0.30.4, numba 0.68.1, numpy 2.4.6
# Date: 2026-11-27
# Behaviour: In Numba's CUDA simulator, two calls of cuda.shared.array on one source line return the
#     same array. Compiled code has two.
# Guess: Each call makes an array of its own, however the lines are broken.
# Seen:
#     compiled for sm_90: 2 shared arrays
#     simulator: on one line a, b = 2, 2; on two lines a, b = 1, 2

source "$(dirname "$0")/lib.sh"
install numba "numba-cuda[cu13]==0.30.4" numba==0.68.1 numpy==2.4.6
compiled=$(run numba <<'END'
import re

from numba import cuda, float32


def one_line(out):
    a, b = cuda.shared.array(1, float32), cuda.shared.array(1, float32)
    a[0], b[0] = 1, 2
    out[0], out[1] = a[0], b[0]


ptx, _ = cuda.compile_ptx(one_line, (float32[::1],), cc=(9, 0))
print(len(re.findall(r"\.shared \.align", ptx)), "shared arrays")
END
)
simulated=$(NUMBA_ENABLE_CUDASIM=1 run numba <<'END'
import numpy as np
from numba import cuda, float32


@cuda.jit
def one_line(out):
    a, b = cuda.shared.array(1, float32), cuda.shared.array(1, float32)
    a[0], b[0] = 1, 2
    out[0], out[1] = a[0], b[0]


@cuda.jit
def two_lines(out):
    a = cuda.shared.array(1, float32)
    b = cuda.shared.array(1, float32)
    a[0], b[0] = 1, 2
    out[0], out[1] = a[0], b[0]


said = []
for kernel, lines in ((one_line, "one line"), (two_lines, "two lines")):
    out = np.zeros(2, np.float32)
    kernel[1, 1](out)
    said.append(f"on {lines} a, b = {out[0]:g}, {out[1]:g}")
print("; ".join(said))
END
)
judge "compiled for sm_90: $compiled
simulator: $simulated"
