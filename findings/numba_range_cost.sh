#!/usr/bin/env bash
# Package: numba-cuda 0.30.4, numba 0.68.1, numpy 2.4.6
# Date: 2026-11-27
# Behaviour: In a kernel, `for k in range(n)` costs four times as many instructions as `while k < n`
#     with the same body.
# Guess: The two loops compile to the same instructions.
# Seen:
#     range: 21.75 PTX instructions for each multiply-add
#     while: 5.25 PTX instructions for each multiply-add

source "$(dirname "$0")/lib.sh"
install numba "numba-cuda[cu13]==0.30.4" numba==0.68.1 numpy==2.4.6
judge "$(run numba <<'END'
import re

from numba import cuda, float32, int64


def with_range(a, b, c, n):
    row, column = cuda.blockIdx.y, cuda.threadIdx.x
    total = float32(0)
    for k in range(n):
        total += a[row, k] * b[k, column]
    c[row, column] = total


def with_while(a, b, c, n):
    row, column = cuda.blockIdx.y, cuda.threadIdx.x
    total = float32(0)
    k = 0
    while k < n:
        total += a[row, k] * b[k, column]
        k += 1
    c[row, column] = total


matrix = float32[:, ::1]
for name, kernel in (("range", with_range), ("while", with_while)):
    ptx, _ = cuda.compile_ptx(kernel, (matrix, matrix, matrix, int64), cc=(9, 0))
    lines = [line.strip() for line in ptx.splitlines()]
    begins = {line.rstrip(":"): at for at, line in enumerate(lines) if line.endswith(":")}
    loops = []  # the instructions from a label to the branch back to it
    for at, line in enumerate(lines):
        branch = re.search(r"\bbra\S*\s+(\$\w+);", line)
        if branch and begins.get(branch[1], at) < at:
            loops.append([x for x in lines[begins[branch[1]] : at + 1] if x.endswith(";")])
    main = max(loops, key=lambda loop: sum("fma.rn.f32" in x for x in loop))
    each = len(main) / sum("fma.rn.f32" in x for x in main)
    print(f"{name}: {each} PTX instructions for each multiply-add")
END
)"
