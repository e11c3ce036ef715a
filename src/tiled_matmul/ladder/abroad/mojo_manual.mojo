"""Shared tiles, element by element: the puzzle's manual solution, for any square size."""

from std.sys import get_defined_int

from layout import TileTensor
from layout.tile_layout import row_major
from layout.tile_tensor import stack_allocation
from max.gpu import barrier, block_idx, thread_idx

comptime SIZE = get_defined_int["SIZE"]()
comptime TILE = get_defined_int["TILE"]()
comptime WHOLE = row_major[SIZE, SIZE]()
comptime Matrix = TileTensor[DType.float32, type_of(WHOLE), MutAnyOrigin]


def mojo_manual(c: Matrix, a: Matrix, b: Matrix):
    var y = thread_idx.y
    var x = thread_idx.x
    var row = block_idx.y * TILE + y
    var column = block_idx.x * TILE + x
    var a_tile = stack_allocation[dtype=DType.float32, address_space=AddressSpace.SHARED](
        row_major[TILE, TILE]()
    )
    var b_tile = stack_allocation[dtype=DType.float32, address_space=AddressSpace.SHARED](
        row_major[TILE, TILE]()
    )
    var acc: c.ElementType = 0
    for start in range(0, SIZE, TILE):
        a_tile[y, x] = a[row, start + x] if row < SIZE and start + x < SIZE else 0
        b_tile[y, x] = b[start + y, column] if start + y < SIZE and column < SIZE else 0
        barrier()
        comptime for k in range(TILE):
            acc += a_tile[y, k] * b_tile[k, x]
        barrier()
    if row < SIZE and column < SIZE:
        c[row, column] = acc


def main():
    from std.compile import compile_info
    from std.sys import get_defined_string
    from max.gpu.host.compile import get_gpu_target

    comptime target = get_gpu_target[get_defined_string["TARGET"]()]()
    print(compile_info[mojo_manual, emission_kind="asm", target=target]().asm)
