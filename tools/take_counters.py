"""Nsight Compute's counters of this GPU, with their provenance, as JSON.

    python tools/take_counters.py ladder --out FILE     every GPU rung of one dtype, and cuBLAS
    python tools/take_counters.py order --out FILE      one Triton kernel, programs in other orders
    python tools/take_counters.py patterns --out FILE   the kernels of tests/counted_kernels.py
    python tools/take_counters.py lowest --out FILE     where rungs are slowest, and torch

Each starts `ncu` on a second call of this file with `--launch`, which checks each output and then
launches it where `ncu` looks. FILE is written whole or not at all; if something fails after `ncu`
ran, what it printed stays beside FILE with the ending .csv. Counters that this `ncu` does not know
are named in FILE and on the screen; without those that the course needs it fails.
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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from tiled_matmul.files import replace_text
from tiled_matmul.measure import counters
from tiled_matmul.measure.counters import LADDER, ORDER, Wanted
from tiled_matmul.measure.provenance import of_counters
from tiled_matmul.models.program_order import BLOCK

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

SIZE = "4096"
EDGES = (4096, 8192, 16384)
GROUPS = (1, 2, 4, 8, 16, 32, 128)
ORDER_DTYPE, ORDER_KERNEL = "float16", "triton_swizzled"
MARK = "end_of_rung"
LONGEST_S = 1200
ALIGNMENT = 256  # bytes: what the driver gives each allocation
STARTED_BY_US = ("--profile-from-start", "off")  # `ncu` looks where cudaProfilerStart was called

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


class CountersError(RuntimeError):
    """The counters could not be taken; the message says what failed and shows what was printed."""


# --- Nsight Compute -------------------------------------------------------------------------------


def known_metrics(ncu: str) -> set[str]:
    """Return the names, without a suffix such as `.sum`, that this `ncu` lists for its GPU."""
    names = set()
    for collection in ("profiling", "source", "launch"):
        command = [ncu, "--query-metrics", "--query-metrics-collection", collection]
        answer = subprocess.run(command, capture_output=True, text=True)
        listed = set(re.findall(r"^\s*([a-z]\w*__\w+)", answer.stdout, re.MULTILINE))
        if not listed:
            print(
                f"ncu lists no {collection} metrics: {answer.stdout[-300:]}{answer.stderr[-300:]}"
            )
        names |= listed
    return names


def choose(known: set[str], wanted: Wanted) -> tuple[list[str], list[str]]:
    """Return the counters to take, and those that this `ncu` does not know."""
    unknown = [name for name in wanted.welcome if name.split(".")[0] not in known]
    return [n for n in (*wanted.needed, *wanted.welcome) if n not in unknown], unknown


def refused(text: str, metrics: Sequence[str], wanted: Wanted) -> list[str]:
    """Return the counters that `ncu`'s errors name, other than those that are needed."""
    errors = "\n".join(line for line in text.splitlines() if line.startswith("==ERROR=="))
    named = set(re.findall(r"\w+__\w+", errors))
    return [n for n in metrics if n.split(".")[0] in named and n not in wanted.needed]


def count(
    launches: Sequence[str], known: set[str], out: Path, wanted: Wanted, options: Sequence[str]
) -> tuple[list[str], list[str], list[dict[str, str]], str]:
    """Run this file with `launches` under `ncu`, with more `options` of `ncu`'s.

    Returns (counters taken, those unknown, rows of ncu's table, what was printed). Tried once more
    without the counters that ncu refuses, if none of them is needed. Raises CountersError with
    ncu's words if it fails.
    """
    command = [sys.executable, str(Path(__file__).resolve()), *launches, "--launch"]
    metrics, unknown = choose(known, wanted)
    log = log_of(out)
    log.parent.mkdir(parents=True, exist_ok=True)
    status, table, printed = profile(command, metrics, log, options)
    dropped = refused(table + printed, metrics, wanted)
    if status and dropped:
        print(f"once more, without {', '.join(dropped)}", flush=True)
        metrics = [metric for metric in metrics if metric not in dropped]
        unknown += dropped
        status, table, printed = profile(command, metrics, log, options)
    if status:
        raise CountersError(f"ncu ended with {status}:\n{table[-3000:]}")
    for name in unknown:
        print(f"left out, ncu does not know it: {name}")
    return metrics, unknown, read_rows(table), printed


def profile(
    command: Sequence[str], metrics: Sequence[str], log: Path, options: Sequence[str]
) -> tuple[int, str, str]:
    """Run `command` under ncu and return (exit status, its table, what was printed)."""
    ncu = ["ncu", "--clock-control", "none", "--csv", "--page", "raw", "--print-units", "base"]
    ncu += ["--log-file", str(log), *options, "--metrics", ",".join(metrics), *command]
    log.unlink(missing_ok=True)
    ended = subprocess.run(
        ncu, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=LONGEST_S
    )
    table = log.read_text(encoding="utf-8") if log.exists() else ""
    print(ended.stdout, flush=True)
    return ended.returncode, table, ended.stdout


def log_of(out: Path) -> Path:
    """Return where ncu's table lies until FILE is written."""
    return out.with_suffix(".csv")


def read_rows(text: str) -> list[dict[str, str]]:
    """Return the launches, a row each, of what `ncu --csv --page raw` printed into its log.

    Raises CountersError where there is no table; the message shows the log's end.
    """
    lines = text.splitlines()
    starts = [number for number, line in enumerate(lines) if line.startswith('"ID"')]
    if len(starts) != 1:
        raise CountersError(f"ncu printed {len(starts)} tables and not one:\n{text[-3000:]}")
    table = [line for line in lines[starts[0] :] if line.startswith('"')]
    return list(csv.DictReader(table))[1:]  # the first holds the units


def numbers_of(
    place: str, row: Mapping[str, str], metrics: Sequence[str], needed: Sequence[str]
) -> dict[str, float]:
    """Return a row's counters; those without a number are left out, with a line that says so.

    Raises CountersError, naming `place`, if one that is needed has none.
    """
    numbers = {}
    for metric in metrics:
        text = row.get(metric, "").replace(",", "")
        try:
            value = float(text)
        except ValueError:
            if metric in needed:
                raise CountersError(f"{place}: no number for {metric}: {text!r}") from None
            print(f"{place}: no number for {metric}: {text!r}")
            continue
        numbers[metric] = int(value) if value.is_integer() else value
    return numbers


def sizes_of(row: Mapping[str, str]) -> dict[str, list[int]]:
    """Return a row's grid and block, each as [x, y, z]."""
    columns = (("grid", "Grid Size"), ("block", "Block Size"))
    return {key: [int(size) for size in re.findall(r"\d+", row[name])] for key, name in columns}


def stored(place: str, row: Mapping[str, str], metrics: Sequence[str], wanted: Wanted) -> dict:
    """Return one kernel as FILE holds it. Raises CountersError if a needed counter is missing."""
    numbers = numbers_of(place, row, metrics, wanted.needed)
    return {"name": row["Kernel Name"], **sizes_of(row), "counters": numbers}


def ncu_here() -> str:
    """Return where `ncu` is. Raises CountersError if it is not installed."""
    ncu = shutil.which("ncu")
    if ncu is None:
        raise CountersError("ncu (NVIDIA Nsight Compute) is not on PATH")
    return ncu


def write(out: Path, text: str) -> None:
    """Write FILE if the course can read it, and remove ncu's table. Raises ValueError."""
    counters.parse(json.loads(text))
    replace_text(out, text)
    log_of(out).unlink()


# --- Every rung -----------------------------------------------------------------------------------


def launch_ladder(chosen: argparse.Namespace) -> None:
    """Check each function, then launch it once where the profiler looks. Raises MatmulError.

    A launch of an empty kernel follows each, so that the rows of `ncu`'s table can be told apart.
    """
    import torch
    from numba import cuda

    from tiled_matmul import ladder
    from tiled_matmul.check import run_checked
    from tiled_matmul.kit.launch import launch as launch_kernel
    from tiled_matmul.measure.bench import contestants
    from tiled_matmul.measure.precision import exact_sums
    from tiled_matmul.problem import Problem, as_layout

    @cuda.jit
    def end_of_rung(x):
        pass

    names = chosen.rungs.split(",") if chosen.rungs else None
    rungs = [
        rung
        for rung in ladder.LADDER
        if (rung.device, rung.dtype) == ("gpu", chosen.dtype)
        and (names is None or rung.name in names)
    ]
    layouts = {rung.name: rung.layout for rung in rungs}
    profiler = torch.cuda.cudart()
    a, b = Problem(*chosen.size, chosen.dtype).inputs(0, device="cuda")
    mark = torch.zeros(1, device="cuda")
    launch_kernel(end_of_rung, (1,), (1,), mark)
    with exact_sums():
        for name, matmul in contestants(rungs)[1].items():
            start = time.monotonic()
            operands = as_layout(a, b, layouts.get(name, "nn"))
            try:
                out = run_checked(matmul, *operands)
            except ValueError as error:
                print(f"refused {name}: {error}", flush=True)
                continue
            torch.cuda.synchronize()
            profiler.cudaProfilerStart()
            matmul(*operands, out=out)
            launch_kernel(end_of_rung, (1,), (1,), mark)
            torch.cuda.synchronize()
            profiler.cudaProfilerStop()
            print(f"launched {name}, {time.monotonic() - start:.1f} s", flush=True)


def split(rows: Sequence[Mapping[str, str]], names: Sequence[str]) -> Iterator[tuple[str, list]]:
    """Yield each name with the rows of its kernels. Raises CountersError if they do not fit."""
    parts: list[list] = [[]]
    for row in rows:
        if MARK in row["Kernel Name"]:
            parts.append([])
        else:
            parts[-1].append(row)
    if parts.pop() or len(parts) != len(names) or not all(parts):
        seen = "\n".join(row["Kernel Name"][:90] for row in rows)
        raise CountersError(f"{len(names)} functions were launched, ncu counted:\n{seen}")
    yield from zip(names, parts, strict=True)


def take_ladder(chosen: argparse.Namespace) -> str:
    """Take the counters of the rungs and return what was taken. Raises CountersError."""
    ncu = ncu_here()
    size_text = "x".join(map(str, chosen.size))
    again = ["ladder", "--size", size_text, "--dtype", chosen.dtype]
    again += ["--rungs", chosen.rungs] if chosen.rungs else []
    known = known_metrics(ncu)
    metrics, unknown, rows, printed = count(again, known, chosen.out, LADDER, STARTED_BY_US)
    names = re.findall(r"^launched (\w+),", printed, re.MULTILINE)
    launches = {
        name: [stored(name, row, metrics, LADDER) for row in part]
        for name, part in split(rows, names)
    }
    setting = dict(zip("mnk", chosen.size, strict=True)) | {"dtype": chosen.dtype}
    write(chosen.out, counters.as_text(of_counters(ncu), setting, unknown, launches))
    if unknown:
        near = sorted(name for name in known if "ldgsts" in name or "pipe_fma" in name)
        print(f"it knows of copies and multiply-adds: {', '.join(near) or 'nothing'}")
    return f"{len(launches)} functions at {size_text}, {len(metrics)} counters each"


# --- Programs in other orders ---------------------------------------------------------------------


def launch_order(chosen: argparse.Namespace) -> None:
    """Run each launch, check it, then run it once where the profiler looks. Raises MatmulError.

    It is `ladder/triton_swizzled.py` on square float16 matrices. GROUP_M of 1 is row by row, one of
    as many tiles as there are is column by column.
    """
    import torch

    from tiled_matmul.check import assert_matmul, poison
    from tiled_matmul.ladder import triton_swizzled
    from tiled_matmul.problem import Problem

    profiler = torch.cuda.cudart()
    for edge in chosen.edges:
        a, b = Problem(edge, edge, edge, ORDER_DTYPE).inputs(0, device="cuda")
        out = poison(a.new_empty((edge, edge)))
        for group_m in chosen.groups:
            start = time.monotonic()
            triton_swizzled.matmul(a, b, out, block=BLOCK, group_m=group_m)
            rows = torch.arange(0, edge, BLOCK[0], device="cuda")  # one of each tile
            assert_matmul(out[rows], a[rows], b)
            torch.cuda.synchronize()
            profiler.cudaProfilerStart()
            triton_swizzled.matmul(a, b, out, block=BLOCK, group_m=group_m)
            torch.cuda.synchronize()
            profiler.cudaProfilerStop()
            poison(out)
            print(f"launched {edge} {group_m}, {time.monotonic() - start:.1f} s", flush=True)


def order_launch(
    edge: int, group_m: int, row: Mapping[str, str], metrics: Sequence[str]
) -> tuple[str, list[dict]]:
    """Return a launch's label and its kernel as FILE holds it.

    Raises CountersError if the row is of another kernel or grid, or if a needed counter has no
    number.
    """
    label = counters.order_label(edge, group_m)
    tiles = -(-edge // BLOCK[0]) * -(-edge // BLOCK[1])
    kernel = stored(label, row, metrics, ORDER)
    if ORDER_KERNEL not in kernel["name"] or kernel["grid"] != [tiles, 1, 1]:
        raise CountersError(f"{label}: ncu counted {kernel['name']} on a grid of {kernel['grid']}")
    return label, [kernel]


def take_order(chosen: argparse.Namespace) -> str:
    """Take the counters of the orders and return what was taken. Raises CountersError."""
    ncu = ncu_here()
    again = ["order", "--edges", ",".join(map(str, chosen.edges))]
    again += ["--groups", ",".join(map(str, chosen.groups))]
    options = [*STARTED_BY_US, "--kernel-name", f"regex:{ORDER_KERNEL}"]
    metrics, unknown, rows, printed = count(again, known_metrics(ncu), chosen.out, ORDER, options)
    launched = re.findall(r"^launched (\d+) (\d+),", printed, re.MULTILINE)
    if len(rows) != len(launched):
        raise CountersError(f"{len(launched)} launches, but ncu counted {len(rows)}")
    if len(set(launched)) != len(launched):
        raise CountersError(f"an edge and a GROUP_M were launched twice: {printed}")
    launches = dict(
        order_launch(int(edge), int(group), row, metrics)
        for (edge, group), row in zip(launched, rows, strict=True)
    )
    setting = {"dtype": ORDER_DTYPE, "block": list(BLOCK)}
    write(chosen.out, counters.as_text(of_counters(ncu), setting, unknown, launches))
    return f"{len(launches)} launches, {len(metrics)} counters each"


# --- Where rungs are slowest ----------------------------------------------------------------------


def launch_lowest(chosen: argparse.Namespace) -> None:
    """Check and warm up both sides of each case, then launch them where the profiler looks."""
    import torch
    from lowest import cases
    from machine_name import short_name
    from numba import cuda

    from tiled_matmul.kit.launch import launch as launch_kernel

    @cuda.jit
    def end_of_rung(x):
        pass

    profiler = torch.cuda.cudart()
    mark = torch.zeros(1, device="cuda")
    launch_kernel(end_of_rung, (1,), (1,), mark)
    for label, made in cases(short_name(torch.cuda.get_device_name())):
        with torch.no_grad():
            for side, call in made().items():
                call()
                torch.cuda.synchronize()
                profiler.cudaProfilerStart()
                call()
                launch_kernel(end_of_rung, (1,), (1,), mark)
                torch.cuda.synchronize()
                profiler.cudaProfilerStop()
                print(f"launched {label}; {side}", flush=True)
        torch.cuda.empty_cache()


def take_lowest(chosen: argparse.Namespace) -> str:
    """Take the counters of both sides of each case and return what was taken."""
    ncu = ncu_here()
    known = known_metrics(ncu)
    metrics, unknown, rows, printed = count(["lowest"], known, chosen.out, LADDER, STARTED_BY_US)
    labels = re.findall(r"^launched (.+; \w+)$", printed, re.MULTILINE)
    launches = {
        label: [stored(label, row, metrics, LADDER) for row in part]
        for label, part in split(rows, labels)
    }
    setting = {"cases": counters.LOWEST}
    write(chosen.out, counters.as_text(of_counters(ncu), setting, unknown, launches))
    return f"{len(launches)} launches, {len(metrics)} counters each"


# --- Patterns of access ---------------------------------------------------------------------------


def launch_patterns(chosen: argparse.Namespace) -> None:
    """Launch each case once, printing its name. Raises CountersError for wrong outputs."""
    from counted_kernels import CASES

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
    """Return what is stored for one case; "counters" holds the numbers in the order of `metrics`.

    Raises CountersError if the row is another launch's.
    """
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
    return kept | {"counters": list(numbers_of(case.name, row, metrics, metrics).values())}


def in_three(size: int | Sequence[int]) -> list[int]:
    """Return a grid or block as [x, y, z]."""
    sizes = [size] if isinstance(size, int) else list(size)
    return sizes + [1] * (3 - len(sizes))


def patterns_text(
    provenance: Mapping, metrics: Sequence[str], cases: Iterable[tuple[str, Mapping]]
) -> str:
    """Return the file's text: JSON, a line a case."""
    lines = [f"  {json.dumps(name)}: {json.dumps(kept)}" for name, kept in cases]
    return (
        f'{{\n"provenance": {json.dumps(provenance, indent=1)},\n'
        f'"metrics": {json.dumps(metrics, indent=1)},\n'
        '"cases": {\n' + ",\n".join(lines) + "\n}\n}\n"
    )


def take_patterns(chosen: argparse.Namespace) -> str:
    """Take the counters of all cases and return what was taken. Raises CountersError."""
    from counted_kernels import CASES

    ncu = ncu_here()
    # Numba's kernels alone; their demangled names carry "abi".
    options = ["--kernel-name-base", "demangled", "--kernel-name", "regex:abi"]
    metrics, unknown, rows, _ = count(
        ["patterns"], known_metrics(ncu), chosen.out, PATTERNS, options
    )
    if len(rows) != len(CASES):
        names = "\n".join(row["Kernel Name"][:90] for row in rows)
        raise CountersError(f"{len(CASES)} launches, but ncu counted {len(rows)}:\n{names}")
    kept = [(case.name, counted(case, row, metrics)) for case, row in zip(CASES, rows, strict=True)]
    provenance = of_counters(ncu) | {"left_out": sorted(unknown)}
    replace_text(chosen.out, patterns_text(provenance, metrics, kept))
    log_of(chosen.out).unlink()
    return f"{len(kept)} cases, {len(metrics)} counters each"


# --- The command line -----------------------------------------------------------------------------


def size(text: str) -> tuple[int, int, int]:
    """Return (M, N, K) of "4096" or "512x512x16384"."""
    parts = text.split("x")
    if len(parts) not in (1, 3) or not all(part.isdigit() and int(part) for part in parts):
        raise argparse.ArgumentTypeError(f"wanted N or MxNxK, got {text!r}")
    m, n, k = map(int, parts * (3 // len(parts)))
    return m, n, k


def numbers(text: str) -> list[int]:
    """Read "4096,8192". Raises ValueError for anything but positive numbers."""
    values = [int(part) for part in text.split(",")]
    if min(values) < 1:
        raise ValueError(f"numbers must be positive, got {text}")
    return values


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    whole = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    subsets = whole.add_subparsers(dest="subset", required=True, metavar="SUBSET")
    for name, text, take, launch in (
        ("ladder", "every GPU rung of one dtype, and cuBLAS", take_ladder, launch_ladder),
        ("order", "one Triton kernel, programs in other orders", take_order, launch_order),
        ("patterns", "kernels of tests/counted_kernels.py", take_patterns, launch_patterns),
        ("lowest", "rungs where they are slowest, and of torch", take_lowest, launch_lowest),
    ):
        subset = subsets.add_parser(name, help=text, description=f"The counters of {text}.")
        subset.add_argument("--out", type=Path, metavar="FILE", help="the JSON file to write")
        subset.add_argument(
            "--launch",
            action="store_true",
            help="launch the kernels once and check them, as `ncu` has it done; count nothing",
        )
        subset.set_defaults(take=take, run=launch)
    ladder, order = subsets.choices["ladder"], subsets.choices["order"]
    ladder.add_argument(
        "--size", type=size, default=SIZE, help=f"edge N of square matrices, or MxNxK ({SIZE})"
    )
    ladder.add_argument("--dtype", default="float32", help="type of the elements (float32)")
    ladder.add_argument(
        "--rungs", metavar="A,B", help="names of the rungs (all that the ladder measures in DTYPE)"
    )
    order.add_argument(
        "--edges", type=numbers, default=EDGES, metavar="A,B", help="edges of the square matrices"
    )
    order.add_argument(
        "--groups", type=numbers, default=GROUPS, metavar="A,B", help="values of GROUP_M"
    )
    return whole


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status."""
    whole = parser()
    chosen = whole.parse_args(arguments)
    if not chosen.launch and chosen.out is None:
        whole.error("--out FILE says where the counters go")
    os.environ["TILED_MATMUL_BACKEND"] = "gpu"
    from tiled_matmul.check import MatmulError
    from tiled_matmul.machine import backend

    try:
        backend.select()
        if chosen.launch:
            chosen.run(chosen)
        else:
            print(f"{chosen.take(chosen)}: {chosen.out}")
    except (backend.BackendError, CountersError, MatmulError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    except subprocess.TimeoutExpired:
        print(f"ncu took over {LONGEST_S} s", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
