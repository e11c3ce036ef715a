#!/usr/bin/env bash
# Package: triton 3.7.1 and 3.9.0, numpy 2.4.6
# Date: 2026-11-27
# Behaviour: A float16 tile times a float argument is float32 in compiled code. In Triton's
#     interpreter it stays float16 and overflows.
# Guess: Interpreter and compiler give the product the same type.
# Seen:
#     3.7.1: compiled for sm_90: tensor<64xf32>; interpreted: 1 * 100000 = inf
#     3.9.0: compiled for sm_90: tensor<64xf32>; interpreted: 1 * 100000 = inf

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
def scaled(p, x):
    tile = tl.load(p + tl.arange(0, 64))
    tl.store(p + tl.arange(0, 64), tile * x)


source = ASTSource(scaled, {"p": "*fp16", "x": "fp32"})
code = triton.compile(source, target=GPUTarget("cuda", 90, 32)).asm["ttir"]
print(re.search(r"arith.mulf .* : (\S+)", code)[1])
END
    )
    interpreted=$(TRITON_INTERPRET=1 run "$version" <<'END'
import triton
import triton.language as tl


@triton.jit
def scaled(x):
    tl.device_print("", tl.full((1,), 1, tl.float16) * x)


scaled[(1,)](100000.0)
END
    )
    interpreted=$(grep -o '\[.*\]' <<<"$interpreted" | tr -d '[]')
    seen+="$version: compiled for sm_90: $compiled; interpreted: 1 * 100000 = $interpreted"$'\n'
done
judge "${seen%$'\n'}"
