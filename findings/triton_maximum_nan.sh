#!/usr/bin/env bash
# Package: triton 3.7.1 and 3.9.0, numpy 2.4.6
# Date: 2026-11-27
# Behaviour: tl.maximum(NaN, 1) is NaN in the interpreter of 3.7.1. Compiled code has an operation
#     that returns the other number, and so has the interpreter of 3.9.0.
# Guess: Where a NaN in the interpreter spreads, it spreads on the GPU too.
# Seen:
#     3.7.1: compiled for sm_90: arith.maxnumf; interpreted: maximum(nan, 1) = nan
#     3.9.0: compiled for sm_90: arith.maxnumf; interpreted: maximum(nan, 1) = 1.

source "$(dirname "$0")/lib.sh"
seen=""
for version in 3.7.1 3.9.0; do
    install "$version" --no-deps "triton==$version" numpy==2.4.6
    compiled=$(run "$version" <<'END'
import re

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def larger(p, x):
    tl.store(p, tl.maximum(tl.load(p), x))


source = ASTSource(larger, {"p": "*fp32", "x": "fp32"})
code = triton.compile(source, target=GPUTarget("cuda", 90, 32)).asm["ttir"]
print(re.search(r"arith\.max\w+", code)[0])
END
    )
    interpreted=$(TRITON_INTERPRET=1 run "$version" <<'END'
import triton
import triton.language as tl


@triton.jit
def larger(x):
    tl.device_print("", tl.maximum(tl.full((1,), x, tl.float32), 1.0))


larger[(1,)](float("nan"))
END
    )
    interpreted=$(grep -o '\[.*\]' <<<"$interpreted" | tr -d '[]')
    seen+="$version: compiled for sm_90: $compiled; interpreted: maximum(nan, 1) = $interpreted"$'\n'
done
judge "${seen%$'\n'}"
