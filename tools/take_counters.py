"""A GPU's counters of the kernels in tests/counted_kernels.py, with their provenance, as JSON.

    python tools/take_counters.py --out FILE    on a GPU machine that has NVIDIA's `ncu`
    python tools/take_counters.py launch    what `ncu` runs: each case once, outputs checked

The first call runs the second twice: plainly, to see that the kernels are right, and under `ncu`.
FILE is written whole or not at all; if something fails after `ncu` ran, what it printed stays
beside FILE with the ending .csv. Counters that this `ncu` does not know are left out, with a
line that says so, and named in FILE; without those that the tests need it fails.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

# What the tests compare with a trace.
NEEDED = (
    "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
    "smsp__inst_executed_op_shared_ld.sum",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
    "smsp__inst_executed_op_shared_st.sum",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
)
# What helps to explain a difference.
WELCOME = (
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
)
ALIGNMENT = 256  # bytes: what the driver gives each allocation


class CountersError(RuntimeError):
    """The counters could not be taken; the message says what failed and shows what was printed."""


def check_and_launch() -> list[str]:
    """Launch each case once, in order, printing its name; return a line for each wrong output."""
    from counted_kernels import CASES

    wrong = []
    start = time.monotonic()
    for number, case in enumerate(CASES, 1):
        elapsed_s = time.monotonic() - start
        print(f"{elapsed_s:5.1f} s, {number}/{len(CASES)}: {case.name}", flush=True)
        for position, expected, found in launch(case):
            wrong.append(f"{case.name}: argument {position} holds\n{found}\nand not\n{expected}")
    return wrong


def launch(case) -> list[tuple]:
    """Launch one case on the GPU and return (position, expected, found) of each wrong output."""
    arguments = case.make_args()
    given = [on_device(value) if getattr(value, "ndim", 0) else value for value in arguments]
    case.kernel[case.grid, case.block, 0, case.sharedmem](*given)
    expected = case.expect(*arguments)
    found = {position: given[position].copy_to_host() for position in expected}
    return [
        (position, expected[position], found[position])
        for position in expected
        if (expected[position] != found[position]).any()
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


def known_metrics(ncu: str) -> set[str]:
    """Return the names, without a suffix such as `.sum`, that this `ncu` lists for its GPU."""
    names = set()
    for collection in ("profiling", "source", "launch"):
        command = [ncu, "--query-metrics", "--query-metrics-collection", collection]
        answer = subprocess.run(command, capture_output=True, text=True)
        found = set(re.findall(r"^\s*([a-z]\w*__\w+)", answer.stdout, re.MULTILINE))
        if not found:
            print(
                f"ncu lists no {collection} metrics: {answer.stdout[-300:]}{answer.stderr[-300:]}"
            )
        names |= found
    return names


def choose(known: set[str]) -> list[str]:
    """Return the counters to take: those that the tests need, and the others that are known."""
    chosen = [*NEEDED, *(name for name in WELCOME if name.split(".")[0] in known)]
    for name in left_out(chosen):
        print(f"left out, ncu does not know it: {name}")
    return chosen


def left_out(chosen: Iterable[str]) -> list[str]:
    """Return the welcome counters that were not chosen."""
    return sorted(set(WELCOME) - set(chosen))


def read_rows(text: str) -> list[dict[str, str]]:
    """Return the launches, a row each, of what `ncu --csv --page raw` printed into its log.

    Raises CountersError where there is no table; the message shows the log's end.
    """
    lines = text.splitlines()
    starts = [number for number, line in enumerate(lines) if line.startswith('"ID"')]
    if len(starts) != 1:
        raise CountersError(f"ncu printed {len(starts)} tables and not one:\n{text[-3000:]}")
    table = [line for line in lines[starts[0] :] if line.startswith('"')]
    rows = list(csv.DictReader(table))
    return rows[1:]  # the first holds the units


def counted(case, row: Mapping[str, str], metrics: Sequence[str]) -> dict:
    """Return what is stored for one case; "counters" holds the numbers in the order of `metrics`.

    Raises CountersError if the row is another launch's.
    """
    name = case.kernel.py_func.__name__
    if name not in row["Kernel Name"]:
        raise CountersError(f"{case.name}: launched {name}, ncu counted {row['Kernel Name']}")
    stored = {"kernel": name}
    for reason in ("merged_shared_loads", "rearranged", "unexplained"):
        if getattr(case, reason):
            stored[reason] = getattr(case, reason)
    for key, column, asked in (
        ("grid", "Grid Size", case.grid),
        ("block", "Block Size", case.block),
    ):
        stored[key] = [int(size) for size in re.findall(r"\d+", row[column])]
        if stored[key] != in_three(asked):
            raise CountersError(f"{case.name}: {key} {in_three(asked)}, ncu says {row[column]}")
    stored["counters"] = []
    for metric in metrics:
        try:
            value = float(row[metric].replace(",", ""))
        except (KeyError, ValueError):
            raise CountersError(f"{case.name}: no number for {metric}: {row}") from None
        stored["counters"].append(int(value) if value.is_integer() else value)
    return stored


def in_three(size: int | Sequence[int]) -> list[int]:
    """Return a grid or block as [x, y, z]."""
    sizes = [size] if isinstance(size, int) else list(size)
    return sizes + [1] * (3 - len(sizes))


def as_text(
    provenance: Mapping, metrics: Sequence[str], cases: Iterable[tuple[str, Mapping]]
) -> str:
    """Return the file's text: JSON, a line a case."""
    lines = [f"  {json.dumps(name)}: {json.dumps(stored)}" for name, stored in cases]
    return (
        f'{{\n"provenance": {json.dumps(provenance, indent=1)},\n'
        f'"metrics": {json.dumps(metrics, indent=1)},\n'
        '"cases": {\n' + ",\n".join(lines) + "\n}\n}\n"
    )


def take(out: Path) -> None:
    """Take the counters of all cases and write them to `out`. Raises CountersError."""
    from counted_kernels import CASES

    from tiled_matmul.files import replace_text

    ncu = shutil.which("ncu")
    if ncu is None:
        raise CountersError("ncu (NVIDIA Nsight Compute) is not on PATH")
    again = [sys.executable, str(Path(__file__).resolve()), "launch"]
    if subprocess.run(again, stdout=subprocess.DEVNULL).returncode:
        raise CountersError("some kernels failed or gave wrong results, see above")
    print(f"the outputs of {len(CASES)} cases are right", flush=True)
    metrics = choose(known_metrics(ncu))
    out.parent.mkdir(parents=True, exist_ok=True)
    log = out.with_suffix(".csv")
    command = [ncu, "--clock-control", "none", "--csv", "--page", "raw", "--print-units", "base"]
    # Numba's kernels alone; their demangled names carry "abi".
    command += ["--kernel-name-base", "demangled", "--kernel-name", "regex:abi"]
    command += ["--metrics", ",".join(metrics), "--log-file", str(log), *again]
    ended = subprocess.run(command)
    text = log.read_text(encoding="utf-8") if log.exists() else ""
    if ended.returncode:
        raise CountersError(f"ncu ended with {ended.returncode}:\n{text[-3000:]}")
    rows = read_rows(text)
    if len(rows) != len(CASES):
        names = "\n".join(row["Kernel Name"][:90] for row in rows)
        raise CountersError(f"{len(CASES)} launches, but ncu counted {len(rows)}:\n{names}")
    stored = [
        (case.name, counted(case, row, metrics)) for case, row in zip(CASES, rows, strict=True)
    ]
    replace_text(out, as_text(provenance(ncu) | {"left_out": left_out(metrics)}, metrics, stored))
    log.unlink()
    print(f"{len(stored)} cases, {len(metrics)} counters each: {out}")


def provenance(ncu: str) -> dict:
    """Return where the counters come from: GPU, driver, versions, date, commit."""
    from tiled_matmul.machine import backend
    from tiled_matmul.measure import bench

    gpu = backend.select().gpu
    origin = bench.provenance("gpu")
    answer = subprocess.run([ncu, "--version"], capture_output=True, text=True).stdout
    version = re.search(r"Version (\S+)", answer)
    return origin | {
        "compute_capability": "{}.{}".format(*gpu.capability),
        "versions": origin["versions"] | {"ncu": version.group(1) if version else answer},
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("mode", nargs="?", choices=("take", "launch"), default="take")
    parser.add_argument("--out", type=Path, help="the JSON file to write")
    chosen = parser.parse_args(arguments)
    if chosen.mode == "take" and chosen.out is None:
        parser.error("--out FILE says where the counters go")
    os.environ["TILED_MATMUL_BACKEND"] = "gpu"
    from tiled_matmul.machine import backend

    try:
        backend.select()
        if chosen.mode == "take":
            take(chosen.out)
            return 0
        wrong = check_and_launch()
    except (backend.BackendError, CountersError) as error:
        print(error, file=sys.stderr)
        return 1
    print("\n".join(wrong), file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
