"""A file of a search with made-up numbers, for tests: what a GPU would have said."""

from dataclasses import asdict

from tiled_matmul.measure import search
from tiled_matmul.measure.records import Entry

ORIGIN = {
    "gpu": "NVIDIA H200",
    "compute_capability": [9, 0],
    "multiprocessors": 132,
    "driver": "580",
    "versions": {"numba": "1"},
    "date": "2026-11-21T12:00:00+00:00",
    "commit": "abc",
}


def record(edge, ratio):
    """Return one measurement as it is stored; cuBLAS runs at 50 TFLOP/s."""
    time_ms = 2 * edge**3 / (50e9 * ratio)
    sizes = dict.fromkeys("mnk", edge)
    return sizes | {"launches": 1, "time_ms": time_ms, "spread": 0.01, "ratio": ratio}


def trial(setting, *ratios, variant=search.AS_IT_IS, **changes):
    """Return one trial as it is stored, measured at search.EDGES; without ratios it failed."""
    found = {"setting": asdict(setting), "variant": variant}
    if not ratios:
        return found | {"error": "too many threads"}
    records = [record(edge, ratio) for edge, ratio in zip(search.EDGES, ratios, strict=True)]
    counts = {"registers": 248, "spilled_bytes": 0, "shared_bytes": 24832}
    counts |= {"instructions": 1122, "multiply_adds": 1024, "same_bank": 0}
    return found | counts | changes | {"records": records}


def file(*trials, **run):
    """Return the entries of a file."""
    entries = []
    for each in trials:
        case = {"setting": each["setting"], "variant": each["variant"]}
        values = {x: y for x, y in each.items() if x not in case}
        entries.append(Entry("a job", case, values, {"cuda_best": "0123"}, ORIGIN | run))
    return entries
