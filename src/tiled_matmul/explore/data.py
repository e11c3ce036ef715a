"""Facts and records that figures to change work on, as their scripts take them.

`tile` has the GPUs of `machine.device` with their limits, `race` the record of chapter 5's kernel,
`climb` the ideas of the first page.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from typing import Any

import numpy as np

from tiled_matmul import ROOT
from tiled_matmul.languages import TRITON
from tiled_matmul.machine.device import PEAKS, shared_limit
from tiled_matmul.models.occupancy import LIMITS
from tiled_matmul.plots.ideas import IDEAS

# The GPUs that readers are likely to have or to rent, and their compute capabilities.
GPUS = {
    "T4": (7, 5),
    "A100-SXM4-80GB": (8, 0),
    "L4": (8, 9),
    "RTX 4090": (8, 9),
    "H100 80GB HBM3": (9, 0),
    "H200": (9, 0),
    "B200": (10, 0),
}
CODE_LINES = 16
EDGE, TILE = 8, 4  # of the matrices and the tiles of `race`


def tile() -> list[dict[str, Any]]:
    """Return for each GPU its peak rates (10¹² FLOP/s, 10⁹ bytes/s) and limits (KiB, counts)."""
    found = []
    for name, cc in GPUS.items():
        peak, (warps, blocks, shared) = PEAKS[name], LIMITS[cc]
        found.append(
            {
                "name": peak.name,
                "major": cc[0],
                "fp32": peak.fp32_tflops,
                "fp16": peak.fp16_tensor_tflops,
                "bandwidth": peak.bandwidth_gbps,
                "warps": warps,
                "blocks": blocks,
                "shared": shared,
                "blockShared": shared_limit(cc) // 1024,
            }
        )
    return found


def operands() -> tuple[np.ndarray, np.ndarray]:
    """Return A and B of `race`, (EDGE, EDGE) float32: small whole numbers, no two rows alike."""
    place = np.arange(EDGE * EDGE).reshape(EDGE, EDGE)
    return ((place * 7 + 3) % 10).astype(np.float32), ((place * 3 + 1) % 10).astype(np.float32)


def race() -> dict[str, Any]:
    """Return the record of block (0, 0) of chapter 5's kernel, with both barriers.

    `threads` holds for each thread its accesses [line, op, array, element] and barriers [line,
    "barrier"] in order, lines counted from the kernel's first; `barriers` are the two lines.
    """
    import torch

    from tiled_matmul.ladder import cuda_shared_tiles
    from tiled_matmul.microscope.cuda import watch
    from tiled_matmul.microscope.written import function_of

    a, b = operands()
    with watch(blocks=[(0, 0, 0)]) as traces:
        cuda_shared_tiles.matmul(*map(torch.from_numpy, (a, b)), tile=TILE)
    made = traces[0]
    kernel = function_of(cuda_shared_tiles.cuda_shared_tiles_kernel)
    source, _ = inspect.getsourcelines(kernel)
    lines = [line.rstrip() for line in source if not line.startswith("@")]
    barriers = [number for number, line in enumerate(lines) if "syncthreads" in line]
    sites = {site.id: site for site in made.sites}
    first = min(site.line for site in made.sites if site.op == "barrier") - barriers[0]
    threads: list[list[list[Any]]] = [[] for _ in range(TILE * TILE)]
    phases = [0] * len(threads)
    for row in made.accesses():
        site, thread = sites[row["site"]], row["thread"]
        while phases[thread] < row["phase"]:
            threads[thread].append([barriers[phases[thread] % 2], "barrier"])
            phases[thread] += 1
        array = made.arrays[row["array"]].name
        threads[thread].append([site.line - first, site.op, array, int(row["element"])])
    return {
        "threads": threads,
        "lines": lines,
        "barriers": barriers,
        "a": a.ravel().tolist(),
        "b": b.ravel().tolist(),
        "c": (a @ b)[:TILE, :TILE].ravel().tolist(),
        "edge": EDGE,
        "tile": TILE,
    }


def climb() -> list[dict[str, Any]]:
    """Return the ideas of the first page with their records and the lines that each one adds.

    `code` holds at most CODE_LINES of them, `more` how many there are beyond. An idea that only
    chose other constants has the lines of the rung below, one in Triton none where Triton is not
    installed. Raises ValueError without a record.
    """
    from tiled_matmul.ladder import LADDER
    from tiled_matmul.measure import results

    rungs = {rung.name: rung for rung in LADDER}
    records = results.reference()
    pages = {path.stem[:2]: path.stem for path in sorted((ROOT / "chapters").glob("*.ipynb"))}
    found = []
    for idea in IDEAS:
        rung = rungs[idea.rung]
        record = results.ladder_record(records, rung)
        if record is None:
            raise ValueError(f"results/h200.json has no {rung.dtype} record of {idea.rung}")
        new = (added(rung) or added(rung.below)) if rung.available else []
        found.append(
            {
                "name": idea.rung,
                "text": idea.text,
                "where": "a CPU" if rung.device == "cpu" else "a GPU",
                "dtype": rung.dtype,
                "library": "NumPy’s BLAS" if record.baseline == "numpy" else "cuBLAS",
                "ratio": record.ratio,
                "tflops": record.tflops,
                "chapter": rung.chapter,
                "page": f"chapters/{pages[f'{rung.chapter:02}']}.html",
                "code": "\n".join(new[:CODE_LINES]),
                "more": max(0, len(new) - CODE_LINES),
                "parts": [idea.a, idea.b, idea.c],
            }
        )
    return found


def added(rung: Any) -> list[str]:
    """Return the lines of a rung's kernel that the rung below does not have, "..." between them."""
    kept = [line for line in rung.changes().splitlines() if line.startswith(("+", " "))]
    lines = [line[1:] if line.startswith("+") else "    ..." for line in kept]
    while lines and lines[-1].strip() == "...":
        lines.pop()
    return lines if any(line.startswith("+") for line in kept) else []


def waves() -> dict[str, Any]:
    """Return the candidates of chapter 14's rule, and the constants of its model, in clocks.

    Empty candidates where Triton is not installed, as the rule's module needs it.
    """
    found: dict[str, Any] = {"candidates": [], "split": [], "short": 10**9}
    if TRITON.missing():
        return found
    from tiled_matmul.dispatch import candidates, costs, rule

    found |= {"start": costs.START, "seam": costs.SEAM, "second": costs.SECOND}
    found |= {"parts": costs.PARTS_A_CLOCK, "short": rule.SHORT}
    found |= {"split": candidates.SPLIT, "mostSplits": candidates.MOST_SPLITS}
    for choice in candidates.candidates(2**20, 2**20, 2**20, 1):
        rows, widths, depth = choice.options["block"]
        found["candidates"].append(
            {
                "rows": rows,
                "widths": widths if isinstance(widths, tuple) else [widths],
                "depth": depth,
                "stays": choice.module in costs.STAY,
                "down": choice.options.get("down", False),
            }
        )
    return found


OF_KIND: dict[str, Callable[[], Any]] = {
    "climb": climb,
    "race": race,
    "tile": tile,
    "waves": waves,
}


def script(kind: str) -> str:
    """Return the script that brings a kind's data, as `Data.kind`."""
    made = json.dumps(OF_KIND[kind](), separators=(",", ":"), ensure_ascii=False)
    return f"globalThis.Data = {{ ...globalThis.Data, {kind}: {made} }};\n"
