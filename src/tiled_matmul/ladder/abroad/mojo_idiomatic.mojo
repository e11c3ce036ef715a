"""Shared tiles, each copied by one call: the puzzle's idiomatic solution, for whole tiles.

`ROWS` rows of `TILE` threads copy; the puzzle has one.
"""

from std.compile import compile_info
from std.memory import AddressSpace
from std.sys import get_defined_int, get_defined_string

from layout import Layout, LayoutTensor
from layout.layout_tensor import copy_dram_to_sram_async
from max.gpu import barrier, block_idx, thread_idx
from max.gpu.host.compile import get_gpu_target
from max.gpu.memory import async_copy_wait_all

comptime SIZE = get_defined_int["SIZE"]()
comptime TILE = get_defined_int["TILE"]()
comptime COPYING = Layout.row_major(get_defined_int["ROWS"](), TILE)
comptime Matrix = LayoutTensor[DType.float32, Layout.row_major(SIZE, SIZE), MutAnyOrigin]
comptime Shared = LayoutTensor[
    DType.float32,
    Layout.row_major(TILE, TILE),
    MutAnyOrigin,
    address_space=AddressSpace.SHARED,
]
comptime copy = copy_dram_to_sram_async[
    thread_layout=COPYING, num_threads = TILE * TILE, block_dim_count=2
]


def mojo_idiomatic(c: Matrix, a: Matrix, b: Matrix):
    var y = Int(thread_idx.y)
    var x = Int(thread_idx.x)
    var c_tile = c.tile[TILE, TILE](Int(block_idx.y), Int(block_idx.x))
    var a_tile = Shared.stack_allocation()
    var b_tile = Shared.stack_allocation()
    var acc: c.element_type = 0
    for step in range(SIZE // TILE):
        copy(a_tile, a.tile[TILE, TILE](Int(block_idx.y), step))
        copy(b_tile, b.tile[TILE, TILE](step, Int(block_idx.x)))
        async_copy_wait_all()
        barrier()
        comptime for k in range(TILE):
            acc += a_tile[y, k] * b_tile[k, x]
        barrier()
    c_tile[y, x] = acc


def main():
    comptime target = get_gpu_target[get_defined_string["TARGET"]()]()
    print(compile_info[mojo_idiomatic, emission_kind="asm", target=target]().asm)
