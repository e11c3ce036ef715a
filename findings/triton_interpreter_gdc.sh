#!/usr/bin/env bash
# Package: triton 3.7.1 and 3.9.0, numpy 2.4.6
# Date: 2026-11-29
# Behaviour: Triton's interpreter cannot run a kernel that waits for the one before it (gdc_wait, of
#     programmatic dependent launch). Its error asks for @triton.jit, which the kernel has. The same
#     kernel compiles.
# Guess: Where kernels run one after the other there is nothing to wait for, so it does nothing.
# Seen:
#     3.7.1: compiled with 1 griddepcontrol.wait; interpreted: Did you forget to add @triton.jit ?
#     3.9.0: compiled with 1 griddepcontrol.wait; interpreted: Did you forget to add @triton.jit ?

source "$(dirname "$0")/lib.sh"
program=$(cat <<'END'
import os

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def late(out):
    tl.extra.cuda.gdc_wait()
    tl.store(out, 1)


@triton.jit
def waits():
    tl.extra.cuda.gdc_wait()


if os.environ.get("TRITON_INTERPRET"):
    try:
        waits[(1,)]()
        print("ran")
    except Exception as error:
        print(str(error).split("(`")[0].split("('")[-1].strip())
else:
    source = ASTSource(late, {"out": "*i32"})
    code = triton.compile(source, GPUTarget("cuda", 90, 32)).asm["ptx"]
    print("compiled with", code.count("griddepcontrol.wait"), "griddepcontrol.wait")
END
)
seen=""
for version in 3.7.1 3.9.0; do
    install "$version" --no-deps "triton==$version" numpy==2.4.6
    compiled=$(run "$version" <<<"$program")
    interpreted=$(TRITON_INTERPRET=1 run "$version" <<<"$program")
    seen+="$version: $compiled; interpreted: $interpreted"$'\n'
done
judge "${seen%$'\n'}"
