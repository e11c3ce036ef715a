#!/usr/bin/env bash
# Package: triton 3.6.0, 3.8.0 and 3.9.0, numpy 2.3.5
# Date: 2026-11-27
# Behaviour: In Triton 3.9.0, hasattr(tl, "make_block_ptr") is true, and the compiler rejects every
#     use. tl.advance is gone. Triton 3.8.0 warns, 3.6.0 is silent.
# Guess: hasattr says whether a Triton has block pointers.
# Seen:
#     3.6.0: make_block_ptr True, advance True; compiles, 0 warnings
#     3.8.0: make_block_ptr True, advance True; compiles, 1 warnings
#     3.9.0: make_block_ptr True, advance False; CompilationError

source "$(dirname "$0")/lib.sh"
seen=""
for version in 3.6.0 3.8.0 3.9.0; do
    install "$version" --no-deps "triton==$version" numpy==2.3.5
    seen+="$version: $(run "$version" <<'END'
import warnings

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, CompilationError


@triton.jit
def increased(p, n):
    block = tl.make_block_ptr(p, (n,), (1,), (0,), (64,), (0,))
    tl.store(block, tl.load(block) + 1)


has = f"make_block_ptr {hasattr(tl, 'make_block_ptr')}, advance {hasattr(tl, 'advance')}"
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    try:
        source = ASTSource(increased, {"p": "*fp32", "n": "i32"})
        triton.compile(source, target=GPUTarget("cuda", 90, 32))
        found = [one for one in caught if "make_block_ptr" in str(one.message)]
        print(f"{has}; compiles, {len(found)} warnings")
    except CompilationError as error:
        print(f"{has}; {type(error).__name__}")
END
    )"$'\n'
done
judge "${seen%$'\n'}"
