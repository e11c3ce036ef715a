"""Tables generated from measurements: the ladder, the status, the claims and the counters.

Each function returns (Markdown, faults). Every missing row is a fault, described in a sentence, so
that no table is incomplete without a warning.
"""

from __future__ import annotations

import re
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from tiled_matmul import ROOT
from tiled_matmul.book.cells import code_hash
from tiled_matmul.book.files import (
    NotebookError,
    chapters,
    is_appendix,
    parse_notebook,
    read_text,
)
from tiled_matmul.measure import records
from tiled_matmul.measure.records import when

STAMP_KEYS = ("gpu", "driver", "cpu", "versions", "date", "seconds", "code_hash")
PACKAGES = ("python", "torch", "triton", "numba", "numba-cuda", "numpy", "matplotlib")
VERDICTS = {True: "holds", False: "does not hold", None: "not judged"}
COUNTED = {True: "hold", False: "do not hold", None: "not judged"}
VERDICT_CLASSES = {True: "holds", False: "fails", None: "open"}
BASELINE_TITLES = {"numpy": "NumPy's BLAS", "cublas": "cuBLAS"}
README_BLOCK = re.compile(r"(<!-- ladder:begin[^>]*-->\n)(.*?)(<!-- ladder:end -->)", re.DOTALL)


def markdown_table(columns: Sequence[str], rows: Iterable[Sequence[str]], right: str = "") -> str:
    """Return a Markdown table; `right` has an "r" at the position of each right-aligned column."""
    rules = ["---:" if right[i : i + 1] == "r" else ":---" for i in range(len(columns))]
    lines = [columns, rules, *([str(cell).replace("|", "\\|") for cell in row] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def significant(value: float, digits: int = 3) -> str:
    """Return a positive number with `digits` significant digits, without an exponent."""
    text = f"{value:.{digits}g}"
    if "e" in text:
        return f"{float(text):,.0f}" if value >= 1 else f"{float(text):.10f}".rstrip("0")
    return text


def shape(record: Any) -> str:
    if record.m == record.n == record.k:
        return f"{record.m}³"
    return f"{record.m} × {record.n} × {record.k}"


def rate(tflops: float) -> str:
    return (
        f"{significant(tflops)} TFLOP/s" if tflops >= 1 else f"{significant(tflops * 1e3)} GFLOP/s"
    )


def ladder_markdown(records: Sequence[Any], rungs: Sequence[Any]) -> tuple[str, list[str]]:
    """Return (the measured ladder, faults): a table for each device and dtype, a row for each rung.

    `records` are results.Record, `rungs` are ladder.Rung. A rung is listed under its own dtype,
    with the baseline in that dtype. A row shows the square size of SHOWN_AT, or the rung's largest
    shape if that was not measured.
    """
    from tiled_matmul.measure.results import SHOWN_AT, ladder_record

    faults, parts = [], []
    for device, dtype in dict.fromkeys((rung.device, rung.dtype) for rung in rungs):
        group = [rung for rung in rungs if (rung.device, rung.dtype) == (device, dtype)]
        of_dtype = [record for record in records if record.dtype == dtype]
        common = (SHOWN_AT[device],) * 3
        rows, shown = [], []
        for rung in group:
            record = ladder_record(of_dtype, rung)
            if record is None:
                faults.append(f"results/h200.json holds no {dtype} record of rung {rung.name}")
                continue
            shown.append(record)
            rows.append((rung.title, str(rung.chapter), record))
        for name in dict.fromkeys(record.baseline for record in shown):
            own = [r for r in of_dtype if r.rung == name and (r.m, r.n, r.k) == common]
            if own:
                rows.append((BASELINE_TITLES.get(name, name), "", own[0]))
        if not rows:
            continue
        machine = ", ".join(dict.fromkeys(record.gpu for record in shown))
        measured = when({"date": r.date, "commit": r.commit} for _, _, r in rows)
        baseline = " or ".join(
            dict.fromkeys(BASELINE_TITLES.get(r.baseline, r.baseline) for r in shown)
        )
        table = markdown_table(
            ("rung", f"of {baseline}", "rate", "time (ms)", "M × N × K", "chapter"),
            (
                (
                    title,
                    f"{significant(100 * record.ratio)}%",
                    rate(record.tflops),
                    significant(record.time_ms),
                    shape(record),
                    chapter,
                )
                for title, chapter, record in rows
            ),
            right=" rrrrr",
        )
        parts.append(f"**{machine}**, {dtype}, measured {measured}:\n\n{table}")
    return "\n\n".join(parts), faults


def readme_with_ladder(text: str, block: str) -> str:
    """Return README.md's text with the ladder `block` between its two markers.

    Raises ValueError if the markers are missing.
    """
    if not README_BLOCK.search(text):
        raise ValueError(
            "README.md lacks the markers <!-- ladder:begin --> and <!-- ladder:end -->"
        )
    return README_BLOCK.sub(lambda match: f"{match[1]}\n{block}\n\n{match[3]}", text, count=1)


def title(notebook: Any) -> str:
    """Return the text of a notebook's first heading, or "" if it has none."""
    for cell in notebook.cells:
        match = re.search(r"^# +(.+?)\s*$", cell.source, re.MULTILINE)
        if cell.cell_type == "markdown" and match:
            return match[1]
    return ""


def _notebooks(root: Path, faults: list[str]) -> Iterator[tuple[str, Any]]:
    counts = Counter()
    for path in chapters(root):
        name = path.relative_to(root)
        counts[is_appendix(path)] += 1
        number = f"A{counts[True]}" if is_appendix(path) else f"{counts[False]}"
        try:
            notebook = parse_notebook(read_text(path), name)
        except NotebookError as error:
            faults.append(str(error))
            continue
        link = f"[{number}. {title(notebook) or path.stem}](/{name.as_posix()})"
        yield link, notebook


def stamp_fault(notebook: Any) -> str | None:
    """Return the fault of a notebook's stamp, or None if it is complete and fits the code."""
    stamp = notebook.metadata.get("tiled_matmul", {}).get("stamp")
    if not isinstance(stamp, dict):
        return "no stamp: `notebooks run` has not stored its outputs"
    missing = [key for key in STAMP_KEYS if key not in stamp]
    if missing:
        return f"its stamp lacks {', '.join(missing)}"
    if stamp["code_hash"] != code_hash(notebook):
        return "stale stamp: code cells were edited after its outputs were made; run it again"
    if not stamp["gpu"]:
        return "its outputs come from a machine with no GPU; run it on one"
    return None


def status_markdown(root: Path = ROOT) -> tuple[str, list[str]]:
    """Return (the machine, date and versions of each chapter's stored outputs, faults)."""
    faults: list[str] = []
    places, versions = [], []
    for link, notebook in _notebooks(root, faults):
        fault = stamp_fault(notebook)
        if fault:
            faults.append(f"{link}: {fault}")
            continue
        stamp = notebook.metadata["tiled_matmul"]["stamp"]
        seconds = f"{stamp['seconds']:.0f} s"
        row = (link, stamp["gpu"], stamp["driver"], stamp["cpu"], stamp["date"][:10], seconds)
        places.append(row)
        versions.append((link, *(stamp["versions"].get(name, "absent") for name in PACKAGES)))
    where = markdown_table(
        ("chapter", "GPU", "driver", "CPU", "date", "time to run"), places, "     r"
    )
    what = markdown_table(("chapter", *PACKAGES), versions)
    return f"**Where and when:**\n\n{where}\n\n**With which versions:**\n\n{what}", faults


def claims_of(notebook: Any) -> list[dict]:
    """Return all claims in a notebook's stored outputs, in order, including those in tables."""
    from tiled_matmul.measure.claims import MIME

    stored = [
        output["data"][MIME]
        for cell in notebook.cells
        if cell.cell_type == "code"
        for output in cell.outputs
        if MIME in output.get("data", {})
    ]
    return [claim for data in stored for claim in (data if isinstance(data, list) else [data])]


def claims_markdown(root: Path = ROOT) -> tuple[str, list[str]]:
    """Return (every claim with its source and the verdict of the stored run, faults)."""
    faults: list[str] = []
    parts, verdicts = [], Counter()
    for link, notebook in _notebooks(root, faults):
        claims = claims_of(notebook)
        if not claims:
            continue
        rows = []
        for claim in claims:
            verdicts[claim["holds"]] += 1
            badge = (
                f'<span class="verdict verdict-{VERDICT_CLASSES[claim["holds"]]}">'
                f"{VERDICTS[claim['holds']]}</span>"
            )
            rows.append((badge, claim["text"], claim["evidence"], claim["source"]))
        stamp = notebook.metadata.get("tiled_matmul", {}).get("stamp") or {}
        gpu, cpu = stamp.get("gpu") or "no GPU", stamp.get("cpu") or "an unknown CPU"
        machine = f"a machine with {gpu} and {cpu}"
        table = markdown_table(("verdict", "claim", "evidence", "source"), rows)
        parts.append(f"**{link}**, on {machine}:\n\n{table}")
    if not parts:
        faults.append("no chapter or appendix has a claim in its stored outputs")
    count = ", ".join(f"{verdicts[holds]} {COUNTED[holds]}" for holds in COUNTED)
    return f"Claims: {sum(verdicts.values())}; {count}.\n\n" + "\n\n".join(parts), faults


def counters_markdown(path: Path) -> tuple[str, list[str]]:
    """Return (the launches whose GPU counters differ from the trace, with the reason, faults)."""
    try:
        entries = records.load(path, "patterns")
        cases = {each.case["name"]: each.values for each in entries}
        runs = [each.run for each in entries]
        where = dict.fromkeys(
            f"{run['gpu']}, driver {run['driver']}, Nsight Compute {run['versions']['ncu']}"
            for run in runs
        )
    except (ValueError, KeyError) as error:
        return "", [f"{path.name}: {error!r}"]
    if not cases:
        return "", [f"{path.name} holds no case"]
    kinds = {
        "merged_shared_loads": "shared loads",
        "rearranged": "global accesses",
        "unexplained": "bank conflicts, for no known reason",
    }
    rows = [
        (name, differs, case[kind])
        for name, case in cases.items()
        for kind, differs in kinds.items()
        if kind in case
    ]
    kernels = len({case["kernel"] for case in cases.values()})
    text = (
        f"{len(cases)} launches of {kernels} kernels were counted on {' and '.join(where)}, "
        f"{when(runs)}. In {len(cases) - len(rows)} of them every count is equal. In the "
        "others the compiler changed what the source says, but for one, which we cannot explain:"
        "\n\n"
    )
    return text + markdown_table(("launch", "what differs", "why"), rows), []


def records_markdown(root: Path) -> tuple[str, list[str]]:
    """Return (a table of the files of results: what, where and when, and what is out of date)."""
    from tiled_matmul.measure import suites

    try:
        waiting = Counter(str(each.path) for each in suites.stale(root))
        stored = [(path, entries) for path, _, entries in suites.files(root)]
    except ValueError as error:
        return "", [str(error)]
    rows = []
    for path, entries in stored:
        if not entries:
            return "", [f"{path} holds no record"]
        file = path.relative_to(root).as_posix()
        jobs = len({each.job for each in entries})
        rows.append(
            (
                f"`{file}`",
                "; ".join(x.help for x in suites.of_file(path.relative_to(root / "results"))),
                ", ".join(dict.fromkeys(each.run["gpu"] for each in entries)),
                when(each.run for each in entries),
                str(jobs),
                str(waiting[file] or ""),
            )
        )
    columns = ("file", "what", "machine", "measured (commits)", "jobs", "of earlier code")
    return markdown_table(columns, rows, right="    rr"), []


def speed_markdown(path: Path) -> tuple[str, list[str]]:
    """Return (the interpreter's time beside that of Numba's simulator, as `make bench` stored it).

    As everywhere in this module, the second value lists the faults.
    """
    try:
        entries = records.load(path, "interpreter")
        median = {x.case["way"]: statistics.median(x.values["seconds"]) for x in entries}
        n, tile = (entries[0].case[key] for key in ("n", "tile"))
        rows = [
            (what, f"{median[name]:.3g}", f"{median['numba'] / median[name]:.3g}")
            for name, what in (
                ("numba", "Numba's own simulator"),
                ("launch", "a launch"),
                ("trace", "a trace with its findings"),
            )
        ]
    except (ValueError, KeyError, IndexError) as error:
        return "", [f"{path.name}: {error!r}"]
    cpu, date = entries[0].run["gpu"], when(each.run for each in entries)
    head = f"A product of {n} × {n} float32 matrices in tiles of {tile} × {tile}, on one core"
    table = markdown_table(("", "seconds", "times as fast"), rows, right=" rr")
    return f"{head} ({cpu}, {date}):\n\n{table}", []
