"""A GPU's counters of every GPU rung of one dtype and of cuBLAS at one size, as JSON.

    python tools/take_ladder_counters.py --out FILE    on a GPU machine that has NVIDIA's `ncu`
    python tools/take_ladder_counters.py launch    what `ncu` runs

The rungs are those that the ladder measures in `--dtype`: Numba's in float32, Triton's in float16.

`launch` checks each product, and then lets `ncu` see one more launch of the same, followed by one
of an empty kernel, so that the rows of `ncu`'s table can be told apart. FILE is written whole or
not at all; if something fails after `ncu` ran, what it printed stays beside FILE, ending on .csv.
Counters that this `ncu` does not know are named in FILE and on the screen; without those that the
course needs it fails. `--size` is the edge of square matrices, or M×N×K as 512x512x16384.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from take_counters import CountersError, known_metrics, provenance, read_rows

from tiled_matmul.files import replace_text
from tiled_matmul.measure import counters

SIZE = "4096"
MARK = "end_of_rung"
LONGEST_S = 600


def launch(size: tuple[int, int, int], dtype: str, names: Sequence[str] | None) -> None:
    """Check each function, then launch it once where the profiler looks. Raises MatmulError."""
    import torch
    from numba import cuda

    from tiled_matmul import ladder
    from tiled_matmul.check import run_checked
    from tiled_matmul.kit.launch import launch as launch_kernel
    from tiled_matmul.measure.bench import contestants, exact_sums
    from tiled_matmul.problem import Problem, as_layout

    @cuda.jit
    def end_of_rung(x):
        pass

    rungs = [
        rung
        for rung in ladder.LADDER
        if (rung.device, rung.dtype) == ("gpu", dtype) and (names is None or rung.name in names)
    ]
    layouts = {rung.name: rung.layout for rung in rungs}
    profiler = torch.cuda.cudart()
    a, b = Problem(*size, dtype).inputs(0, device="cuda")
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


def stored(rung: str, row: Mapping[str, str], metrics: Sequence[str]) -> dict:
    """Return one kernel as FILE holds it; a counter without a number is left out.

    Raises CountersError if one that the course needs has none.
    """
    sizes = {
        key: [int(size) for size in re.findall(r"\d+", row[column])]
        for key, column in (("grid", "Grid Size"), ("block", "Block Size"))
    }
    return {"name": row["Kernel Name"], **sizes, "counters": numbers_of(rung, row, metrics)}


# What other tools call, too: `wanted` is the module that names the counters, NEEDED and WELCOME.


def numbers_of(place: str, row: Mapping[str, str], metrics: Sequence[str], wanted=counters) -> dict:
    """Return a row's counters, those without a number left out and told.

    Raises CountersError, naming `place`, if one that is needed has none.
    """
    found = {}
    for metric in metrics:
        text = row.get(metric, "").replace(",", "")
        try:
            value = float(text)
        except ValueError:
            if metric in wanted.NEEDED.values():
                raise CountersError(f"{place}: no number for {metric}: {text!r}") from None
            print(f"{place}: no number for {metric}: {text!r}")
            continue
        found[metric] = int(value) if value.is_integer() else value
    return found


def choose(known: set[str], wanted=counters) -> tuple[list[str], list[str]]:
    """Return the counters to take, and those that this `ncu` does not know."""
    unknown = [name for name in wanted.WELCOME.values() if name.split(".")[0] not in known]
    return [name for name in wanted.METRICS.values() if name not in unknown], unknown


def refused(text: str, metrics: Sequence[str], wanted=counters) -> list[str]:
    """Return the counters that `ncu`'s errors name, other than those that are needed."""
    errors = "\n".join(line for line in text.splitlines() if line.startswith("==ERROR=="))
    named = set(re.findall(r"\w+__\w+", errors))
    needed = wanted.NEEDED.values()
    return [name for name in metrics if name.split(".")[0] in named and name not in needed]


def count(
    command: Sequence[str], known: set[str], log: Path, wanted=counters, options: Sequence[str] = ()
) -> tuple[list[str], list[str], str, str]:
    """Run `command` under ncu; return (counters taken, those unknown, its table, what was printed).

    Tried once more without the counters that ncu refuses, if none of them is needed. `options` are
    more of ncu's. Raises CountersError with ncu's words if it fails.
    """
    metrics, unknown = choose(known, wanted)
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
    return metrics, unknown, table, printed


def profile(
    command: Sequence[str], metrics: Sequence[str], log: Path, options: Sequence[str] = ()
) -> tuple[int, str, str]:
    """Run `command` under ncu and return (exit status, its table, what was printed)."""
    ncu = ["ncu", "--clock-control", "none", "--profile-from-start", "off", "--csv"]
    ncu += ["--page", "raw", "--print-units", "base", "--log-file", str(log)]
    ncu += [*options, "--metrics", ",".join(metrics), *command]
    log.unlink(missing_ok=True)
    ended = subprocess.run(
        ncu, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=LONGEST_S
    )
    table = log.read_text(encoding="utf-8") if log.exists() else ""
    print(ended.stdout, flush=True)
    return ended.returncode, table, ended.stdout


def take(out: Path, size: tuple[int, int, int], dtype: str, rungs: str | None) -> None:
    """Take the counters and write them to `out`. Raises CountersError."""
    ncu = shutil.which("ncu")
    if ncu is None:
        raise CountersError("ncu (NVIDIA Nsight Compute) is not on PATH")
    known, log = known_metrics(ncu), out.with_suffix(".csv")
    size_text = "x".join(map(str, size))
    again = [sys.executable, str(Path(__file__).resolve()), "launch", "--size", size_text]
    again += ["--dtype", dtype]
    again += ["--rungs", rungs] if rungs else []
    metrics, unknown, table, printed = count(again, known, log)
    names = re.findall(r"^launched (\w+),", printed, re.MULTILINE)
    found = {
        name: [stored(name, row, metrics) for row in rows]
        for name, rows in split(read_rows(table), names)
    }
    problem = dict(zip("mnk", size, strict=True)) | {"dtype": dtype}
    text = counters.as_text(provenance(ncu), problem, unknown, found)
    replace_text(out, text)
    counters.load(out)
    log.unlink()
    for name in unknown:
        print(f"left out, ncu does not know it: {name}")
    if unknown:
        near = sorted(name for name in known if "ldgsts" in name or "pipe_fma" in name)
        print(f"it knows of copies and multiply-adds: {', '.join(near) or 'nothing'}")
    print(f"{len(found)} functions at {size_text}, {len(metrics)} counters each: {out}")


def sizes(text: str) -> tuple[int, int, int]:
    """Return (M, N, K) of "4096" or "512x512x16384"."""
    parts = text.split("x")
    if len(parts) not in (1, 3) or not all(part.isdigit() and int(part) for part in parts):
        raise argparse.ArgumentTypeError(f"wanted N or MxNxK, got {text!r}")
    m, n, k = map(int, parts * (3 // len(parts)))
    return m, n, k


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("mode", nargs="?", choices=("take", "launch"), default="take")
    parser.add_argument("--out", type=Path, help="the JSON file to write")
    parser.add_argument("--size", type=sizes, default=SIZE, help=f"N, or MxNxK ({SIZE})")
    parser.add_argument("--dtype", default="float32", help="of the matrices (float32)")
    parser.add_argument("--rungs", metavar="A,B", help="which rungs; all of that dtype")
    chosen = parser.parse_args(arguments)
    if chosen.mode == "take" and chosen.out is None:
        parser.error("--out FILE says where the counters go")
    os.environ["TILED_MATMUL_BACKEND"] = "gpu"
    from tiled_matmul.check import MatmulError
    from tiled_matmul.machine import backend

    try:
        backend.select()
        if chosen.mode == "take":
            take(chosen.out, chosen.size, chosen.dtype, chosen.rungs)
        else:
            launch(chosen.size, chosen.dtype, chosen.rungs.split(",") if chosen.rungs else None)
    except (backend.BackendError, CountersError, MatmulError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    except subprocess.TimeoutExpired:
        print(f"ncu took over {LONGEST_S} s", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
