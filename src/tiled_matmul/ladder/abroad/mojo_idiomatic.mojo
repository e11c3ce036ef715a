"""Shared tiles, each copied by one call: the puzzle's idiomatic solution, for whole tiles.

`ROWS` rows of `TILE` threads copy; the puzzle has one.
"""

from std.sys import get_defined_int

from layout import Layout, TileTensor
from layout.layout_tensor import copy_dram_to_sram_async
from layout.tile_layout import row_major
from layout.tile_tensor import stack_allocation
from max.gpu import barrier, block_idx, thread_idx
from max.gpu.memory import async_copy_wait_all

comptime SIZE = get_defined_int["SIZE"]()
comptime TILE = get_defined_int["TILE"]()
comptime COPYING = Layout.row_major(get_defined_int["ROWS"](), TILE)
comptime WHOLE = row_major[SIZE, SIZE]()
comptime Matrix = TileTensor[DType.float32, type_of(WHOLE), MutAnyOrigin]
comptime copy = copy_dram_to_sram_async[
    thread_layout=COPYING, num_threads=TILE * TILE, block_dim_count=2
]


def mojo_idiomatic(c: Matrix, a: Matrix, b: Matrix):
    var y = thread_idx.y
    var x = thread_idx.x
    var c_tile = c.tile[TILE, TILE](block_idx.y, block_idx.x)
    var a_tile = stack_allocation[dtype=DType.float32, address_space=AddressSpace.SHARED](
        row_major[TILE, TILE]()
    )
    var b_tile = stack_allocation[dtype=DType.float32, address_space=AddressSpace.SHARED](
        row_major[TILE, TILE]()
    )
    var acc: c.ElementType = 0
    for step in range(SIZE // TILE):
        copy(
            a_tile.to_layout_tensor(),
            a.tile[TILE, TILE](block_idx.y, step).to_layout_tensor(),
        )
        copy(
            b_tile.to_layout_tensor(),
            b.tile[TILE, TILE](step, block_idx.x).to_layout_tensor(),
        )
        async_copy_wait_all()
        barrier()
        comptime for k in range(TILE):
            acc += a_tile[y, k] * b_tile[k, x]
        barrier()
    c_tile[y, x] = acc


def main():
    from std.compile import compile_info
    from std.sys import get_defined_string
    from max.gpu.host.compile import get_gpu_target

    comptime target = get_gpu_target[get_defined_string["TARGET"]()]()
    print(compile_info[mojo_idiomatic, emission_kind="asm", target=target]().asm)
