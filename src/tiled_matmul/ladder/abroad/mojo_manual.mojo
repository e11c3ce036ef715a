"""Shared tiles, element by element: the puzzle's manual solution, for any square size."""

from std.compile import compile_info
from std.memory import AddressSpace
from std.sys import get_defined_int, get_defined_string

from layout import Layout, LayoutTensor
from max.gpu import barrier, block_idx, thread_idx
from max.gpu.host.compile import get_gpu_target

comptime SIZE = get_defined_int["SIZE"]()
comptime TILE = get_defined_int["TILE"]()
comptime Matrix = LayoutTensor[DType.float32, Layout.row_major(SIZE, SIZE), MutAnyOrigin]
comptime Shared = LayoutTensor[
    DType.float32,
    Layout.row_major(TILE, TILE),
    MutAnyOrigin,
    address_space=AddressSpace.SHARED,
]


def mojo_manual(c: Matrix, a: Matrix, b: Matrix):
    var y = Int(thread_idx.y)
    var x = Int(thread_idx.x)
    var row = Int(block_idx.y) * TILE + y
    var column = Int(block_idx.x) * TILE + x
    var a_tile = Shared.stack_allocation()
    var b_tile = Shared.stack_allocation()
    var acc: c.element_type = 0
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
    comptime target = get_gpu_target[get_defined_string["TARGET"]()]()
    print(compile_info[mojo_manual, emission_kind="asm", target=target]().asm)
