"""Records with made-up numbers, for tests of what reads and writes them."""

from tiled_matmul.measure.records import Entry

RUN = {
    "gpu": "NVIDIA H200",
    "driver": "580.1",
    "versions": {"numba": "1", "ncu": "2026.1"},
    "date": "2026-11-21T12:00:00+00:00",
    "commit": "abc1234",
}


def entry(case, values, kernels=None, job="a job", **run):
    """Return an entry; `run` changes its provenance."""
    return Entry(job, case, values, kernels or {}, RUN | run)
