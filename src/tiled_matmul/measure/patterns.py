"""The suite "patterns": what hardware counts of the specimens, to hold the microscope against.

Its one job runs this module under `ncu`, which checks what each launch leaves in memory.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tiled_matmul.measure import ncu
from tiled_matmul.measure.ncu import CountersError, Wanted, numbers_of, sizes_of
from tiled_matmul.measure.suite import Job, Suite, Taken

ALIGNMENT = 256  # bytes: what the driver gives each allocation
PATTERNS = Wanted(
    # What the tests compare with a trace.
    needed=(
        "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
        "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
        "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",
        "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
        "smsp__inst_executed_op_shared_ld.sum",
        "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
        "smsp__inst_executed_op_shared_st.sum",
        "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
    ),
    # What helps to explain a difference.
    welcome=(
        "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
        "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
        "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
        "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
        "smsp__sass_inst_executed_op_shared_ld.sum",
        "smsp__sass_inst_executed_op_shared_st.sum",
        "smsp__sass_inst_executed_op_global_ld.sum",
        "smsp__sass_inst_executed_op_global_st.sum",
        "smsp__inst_executed_op_global_atom.sum",
        "smsp__inst_executed_op_global_red.sum",
        "smsp__inst_executed.sum",
        # Asynchronous copies: of 4 and 8 bytes through the L1 cache ("access"), of 16 past it
        # ("bypass"). For an H200 ncu 2025.3.1 knows l1tex__t_…_ldgsts_cache_bypass and
        # l1tex__data_pipe_lsu_wavefronts_…_ldgsts not; names with smsp__sass_ stand in for them.
        "smsp__inst_executed_op_ldgsts.sum",
        "smsp__sass_inst_executed_op_ldgsts_cache_access.sum",
        "smsp__sass_inst_executed_op_ldgsts_cache_bypass.sum",
        "l1tex__t_requests_pipe_lsu_mem_global_op_ldgsts_cache_access.sum",
        "l1tex__t_sectors_pipe_lsu_mem_global_op_ldgsts_cache_access.sum",
        "smsp__sass_l1tex_t_requests_pipe_lsu_mem_global_op_ldgsts_cache_access.sum",
        "smsp__sass_l1tex_t_requests_pipe_lsu_mem_global_op_ldgsts_cache_bypass.sum",
        "smsp__sass_l1tex_t_sectors_pipe_lsu_mem_global_op_ldgsts_cache_access.sum",
        "smsp__sass_l1tex_t_sectors_pipe_lsu_mem_global_op_ldgsts_cache_bypass.sum",
        "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ldgsts.sum",
        "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ldgsts_cache_access.sum",
        "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ldgsts_cache_bypass.sum",
        "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ldgsts.sum",
        "smsp__sass_l1tex_data_bank_conflicts_pipe_lsu_mem_shared_op_ldgsts.sum",
        "smsp__sass_l1tex_data_bank_conflicts_pipe_lsu_mem_shared_op_ldgsts_cache_access.sum",
        "smsp__sass_l1tex_data_bank_conflicts_pipe_lsu_mem_shared_op_ldgsts_cache_bypass.sum",
        "launch__registers_per_thread",
        "dram__bytes_read.sum",
        "lts__t_sectors_op_read.sum",
    ),
)


def launch_patterns() -> None:
    """Launch each case once, printing its name. Raises CountersError for wrong outputs."""
    from tiled_matmul.specimens.kernels import CASES

    wrong = []
    start = time.monotonic()
    for number, case in enumerate(CASES, 1):
        elapsed_s = time.monotonic() - start
        print(f"{elapsed_s:5.1f} s, {number}/{len(CASES)}: {case.name}", flush=True)
        for position, expected, output in launch_case(case):
            wrong.append(f"{case.name}: argument {position} holds\n{output}\nand not\n{expected}")
    if wrong:
        raise CountersError("\n".join(wrong))


def launch_case(case) -> list[tuple]:
    """Launch one case on the GPU and return (position, expected, output) of each wrong output."""
    arguments = case.make_args()
    given = [on_device(value) if getattr(value, "ndim", 0) else value for value in arguments]
    case.kernel[case.grid, case.block, 0, case.sharedmem](*given)
    expected = case.expect(*arguments)
    outputs = {position: given[position].copy_to_host() for position in expected}
    return [
        (position, expected[position], outputs[position])
        for position in expected
        if (expected[position] != outputs[position]).any()
    ]


def on_device(array):
    """Return the array on the GPU; a view of a longer one stays as far from the longer one's start.

    Raises ValueError for a view that is not one unbroken piece.
    """
    from numba import cuda

    root = array
    while root.base is not None:
        root = root.base
    device = cuda.to_device(array if root.size == array.size else root.reshape(-1))
    if device.__cuda_array_interface__["data"][0] % ALIGNMENT:
        raise ValueError(f"an array on the GPU does not start at a multiple of {ALIGNMENT} bytes")
    if root.size == array.size:
        return device
    if array.ndim != 1 or not array.flags.c_contiguous:
        raise ValueError("a view has to be one-dimensional and unbroken")
    start = (array.ctypes.data - root.ctypes.data) // array.itemsize
    return device[start : start + array.size]


def counted(case, row: Mapping[str, str], metrics: Sequence[str]) -> dict:
    """Return what is stored for one case. Raises CountersError if the row is another launch's."""
    name = case.kernel.py_func.__name__
    if name not in row["Kernel Name"]:
        raise CountersError(f"{case.name}: launched {name}, ncu counted {row['Kernel Name']}")
    kept = {"kernel": name}
    for reason in ("merged_shared_loads", "rearranged", "unexplained"):
        if getattr(case, reason):
            kept[reason] = getattr(case, reason)
    for key, size in sizes_of(row).items():
        asked = in_three(getattr(case, key))
        if size != asked:
            raise CountersError(f"{case.name}: {key} {asked}, ncu says {size}")
        kept[key] = size
    return kept | {"counters": numbers_of(case.name, row, metrics, metrics)}


def in_three(size: int | Sequence[int]) -> list[int]:
    """Return a grid or block as [x, y, z]."""
    sizes = [size] if isinstance(size, int) else list(size)
    return sizes + [1] * (3 - len(sizes))


def code_of(case: Any) -> str:
    """Return the name of a case's kernel for `fingerprint.of`."""
    function = case.kernel.py_func
    module = function.__module__.removeprefix("tiled_matmul.")
    return f"{module}::{function.__qualname__.partition('.')[0]}"


def take() -> Iterator[Taken]:
    """Yield the counters of all cases. Raises CountersError."""
    from tiled_matmul.specimens.kernels import CASES

    # Numba's kernels alone; their demangled names carry "abi".
    options = ["--kernel-name-base", "demangled", "--kernel-name", "regex:abi"]
    counted_all = ncu.count(__name__, [], PATTERNS, options)
    if len(counted_all.rows) != len(CASES):
        names = "\n".join(row["Kernel Name"][:90] for row in counted_all.rows)
        raise CountersError(
            f"{len(CASES)} launches, but ncu counted {len(counted_all.rows)}:\n{names}"
        )
    for case, row in zip(CASES, counted_all.rows, strict=True):
        values = counted(case, row, counted_all.metrics) | {"unknown": list(counted_all.unknown)}
        yield {"name": case.name, "code": code_of(case)}, values


def jobs() -> list[Job]:
    """Return the one job."""
    from tiled_matmul.specimens.kernels import CASES

    return [Job("patterns", tuple(dict.fromkeys(map(code_of, CASES))), take)]


SUITES = (
    Suite("patterns", "what hardware counts of specimens", jobs, "patterns/{machine}.json",
          more=ncu.provenance),
)  # fmt: skip

if __name__ == "__main__":
    launch_patterns()
