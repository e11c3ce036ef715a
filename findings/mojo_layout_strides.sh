#!/usr/bin/env bash
# Package: mojo 1.2.0, max-mojo-libs 26.7.0
# Date: 2026-11-29
# Behaviour: A kernel that indexes a LayoutTensor whose layout is a constant of the compiler,
#     Layout.row_major(64, 64), reads the strides from the argument at run time, and multiplies by
#     them: 32 bytes, of which the strides are bytes 16 to 23. A launcher that passes only the address
#     gets wrong elements.
# Guess: Row 3 of such a layout is 192 elements away, a constant in the code, and the argument is a
#     pointer.
# Seen:
#     argument: 32 bytes; reads of its bytes from 16 on: 1; multiplications: 1

source "$(dirname "$0")/lib.sh"
kernel=$(cat <<'END'
from std.compile import compile_info

from layout import Layout, LayoutTensor
from max.gpu import thread_idx
from max.gpu.host.compile import get_gpu_target

comptime Matrix = LayoutTensor[DType.float32, Layout.row_major(64, 64), MutAnyOrigin]


def row_of(a: Matrix):
    a[Int(thread_idx.x), 0] = 1


def main():
    print(compile_info[row_of, emission_kind="asm", target=get_gpu_target["sm_80"]()]().asm)
END
)
install mojo mojo==1.2.0 mojo-compiler==1.2.0 mojo-compiler-mojo-libs==1.2.0 \
    max-mojo-libs==26.7.0 max-core==26.7.0
printf '%s\n' "$kernel" >"$folder/row_of.mojo"
seen=$(run mojo <<'END'
import re
import subprocess

command = ["mojo", "run", "row_of.mojo"]
ptx = subprocess.run(command, capture_output=True, text=True).stdout
(size,) = re.findall(r"\.param .*\[(\d+)\]", ptx)
reads = len(re.findall(r"ld\.param\S* .*\+(?:16|20)\]", ptx))
products = len(re.findall(r"\bmul\.(?:lo|wide)\.\w+ .*%r\w+, %r\w+;", ptx))
print(f"argument: {size} bytes; reads of its bytes from 16 on: {reads}; multiplications: {products}")
END
)
judge "$seen"
