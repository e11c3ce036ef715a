#!/usr/bin/env bash
# Package: triton 3.9.0, numpy 2.4.6
# Date: 2026-11-27
# Behaviour: In Triton, -7 // 2 is -4 if -7 is a tl.constexpr, and -3 if it is an argument: Python
#     divides at compile time and rounds down; arith.divsi divides at run time and rounds to 0.
# Guess: Making an argument a constexpr changes the speed of a kernel, not its results.
# Seen:
#     constexpr: constant -4; argument: arith.divsi, which gives -3

source "$(dirname "$0")/lib.sh"
install triton --no-deps triton==3.9.0 numpy==2.4.6
compiled=$(run triton <<'END'
import re

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def halved(p, x: tl.constexpr, y):
    tl.store(p, x // 2)
    tl.store(p + 1, y // 2)


signature = {"p": "*i32", "x": "constexpr", "y": "i32"}
source = ASTSource(halved, signature, constexprs={(1,): -7})
code = triton.compile(source, target=GPUTarget("cuda", 90, 32)).asm["ttir"]
constant = re.search(r"tt.store %p, %c(-\d+)_i32", code)[1]
print(f"constexpr: constant {constant}; argument: {re.search(r'arith.div.i', code)[0]}")
END
)
interpreted=$(TRITON_INTERPRET=1 run triton <<'END'
import triton
import triton.language as tl


@triton.jit
def halved(y):
    tl.device_print("", y // 2)


halved[(1,)](-7)
END
)
judge "$compiled, which gives $(grep -o '\[.*\]' <<<"$interpreted" | tr -d '[]')"
