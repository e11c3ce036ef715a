#!/usr/bin/env bash
# Package: mojo 1.2.0, max-mojo-libs 26.7.0
# Date: 2026-11-29
# Behaviour: copy_dram_to_sram_async[thread_layout=Layout.row_major(1, 16), num_threads=256] copies a
#     tile of 16 x 16 by 16 threads, 16 elements each. num_threads does not add to them: it makes the
#     other 240 step aside.
# Guess: num_threads says how many threads copy, so each of the 256 copies one element.
# Seen:
#     row_major(1, 16): 16 copies in a thread, for threads below 16
#     row_major(16, 16): 1 copies in a thread, for all threads

source "$(dirname "$0")/lib.sh"
kernel=$(cat <<'END'
from std.compile import compile_info
from std.memory import AddressSpace
from std.sys import get_defined_int

from layout import Layout, LayoutTensor
from layout.layout_tensor import copy_dram_to_sram_async
from max.gpu import barrier, thread_idx
from max.gpu.host.compile import get_gpu_target
from max.gpu.memory import async_copy_wait_all

comptime Tile = LayoutTensor[DType.float32, Layout.row_major(16, 16), MutAnyOrigin]
comptime Shared = LayoutTensor[
    DType.float32, Layout.row_major(16, 16), MutAnyOrigin, address_space=AddressSpace.SHARED
]


def copied(c: Tile, a: Tile):
    var shared = Shared.stack_allocation()
    copy_dram_to_sram_async[
        thread_layout = Layout.row_major(get_defined_int["ROWS"](), 16),
        num_threads=256,
        block_dim_count=2,
    ](shared, a)
    async_copy_wait_all()
    barrier()
    c[Int(thread_idx.x), Int(thread_idx.y)] = shared[Int(thread_idx.y), Int(thread_idx.x)]


def main():
    print(compile_info[copied, emission_kind="asm", target=get_gpu_target["sm_80"]()]().asm)
END
)
install mojo mojo==1.2.0 mojo-compiler==1.2.0 mojo-compiler-mojo-libs==1.2.0 \
    max-mojo-libs==26.7.0 max-core==26.7.0
printf '%s\n' "$kernel" >"$folder/copied.mojo"
seen=$(run mojo <<'END'
import re
import subprocess

for rows in (1, 16):
    command = ["mojo", "run", "-D", f"ROWS={rows}", "copied.mojo"]
    ptx = subprocess.run(command, capture_output=True, text=True).stdout
    copies = len(re.findall(r"cp\.async\.\w+\.shared\.global", ptx))
    below = re.search(r"setp\.gt\.u32 .*, (\d+);", ptx)
    who = f"threads below {int(below[1]) + 1}" if below else "all threads"
    print(f"row_major({rows}, 16): {copies} copies in a thread, for {who}")
END
)
judge "$seen"
