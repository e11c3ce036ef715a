#!/usr/bin/env bash
# Package: triton 3.9.0, numpy 2.4.6
# Date: 2026-11-27
# Behaviour: For compute capability 7.5, tl.dot on float16 compiles to scalar float32 multiply-adds,
#     without a message. The GPUs of that capability, such as the T4, have tensor cores.
# Guess: tl.dot on float16 uses tensor cores where the GPU has them.
# Seen:
#     sm_75: 0 instructions for tensor cores, scalar multiply-adds: True
#     sm_80: 32 instructions for tensor cores, scalar multiply-adds: False
#     sm_90: 4 instructions for tensor cores, scalar multiply-adds: False

source "$(dirname "$0")/lib.sh"
install triton --no-deps triton==3.9.0 numpy==2.4.6
judge "$(run triton <<'END'
import re

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def product(a, b, c, K, T: tl.constexpr):
    i = tl.arange(0, T)
    total = tl.zeros((T, T), tl.float32)
    for k in range(0, K, T):
        x = tl.load(a + i[:, None] * K + i[None, :] + k)
        y = tl.load(b + (i[:, None] + k) * T + i[None, :])
        total = tl.dot(x, y, total)
    tl.store(c + i[:, None] * T + i[None, :], total)


signature = {"a": "*fp16", "b": "*fp16", "c": "*fp32", "K": "i32", "T": "constexpr"}
for capability in (75, 80, 90):
    source = ASTSource(product, signature, constexprs={(4,): 64})
    code = triton.compile(source, target=GPUTarget("cuda", capability, 32)).asm["ptx"]
    cores = len(re.findall(r"\bw?g?mma(?:\.mma_async)?\.sync", code))
    print(
        f"sm_{capability}: {cores} instructions for tensor cores, "
        f"scalar multiply-adds: {'fma.rn.f32' in code}"
    )
END
)"
