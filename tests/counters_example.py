"""A file of counters with made-up numbers, for tests: what a GPU would have said."""

from tiled_matmul.measure import counters
from tiled_matmul.measure.records import Entry
from tiled_matmul.models.program_order import BLOCK

GPU = "NVIDIA H200"
NUMBERS = {
    "time_ns": 2_000_000,
    "load_requests": 1000,
    "load_sectors": 16_500,
    "store_sectors": 10,
    "shared_load_wavefronts": 300,
    "shared_store_wavefronts": 100,
    "shared_load_conflicts": 7,
    "shared_store_conflicts": 5,
    "instructions": 5000,
    "thread_fmas": 64_000,
    "registers": 32,
    "dram_read_bytes": 600,
    "dram_write_bytes": 200,
    "async_cached_sectors": 1,
    "async_bypass_sectors": 3,
    "fma_pipe_pct": 40.5,
}


def kernel(leave_out=(), **changes):
    """Return one kernel as it is stored; a counter of NEEDED that NUMBERS lacks is 1."""
    numbers = dict.fromkeys(counters.NEEDED, 1) | NUMBERS | changes
    return {
        "name": "some_kernel",
        "grid": [4, 2, 1],
        "block": [256, 1, 1],
        "counters": {
            counters.METRICS[name]: value
            for name, value in numbers.items()
            if name not in leave_out
        },
    }


PROVENANCE = dict.fromkeys(counters.PROVENANCE, "x") | {
    "gpu": GPU, "versions": {"ncu": "1"}, "date": "2026-11-21T12:00:00+00:00",
}  # fmt: skip


def values(kernels, unknown):
    return {"kernels": kernels, "unknown": list(unknown)}


def file(launches, size=4096, gpu=GPU, unknown=(), dtype="float32"):
    """Return entries of the ladder; `launches` maps rungs to lists of stored kernels."""
    run = PROVENANCE | {"gpu": gpu}
    sizes = {"of": "ladder"} | dict.fromkeys("mnk", size) | {"dtype": dtype}
    return [
        Entry(
            "a job", sizes | {"rung": name}, {"kernels": kernels, "unknown": list(unknown)}, {}, run
        )
        for name, kernels in launches.items()
    ]


ORDER_NUMBERS = {
    "time_ns": 1_500_000,
    "dram_read_bytes": 4 * 2 * 8192 * 8192 * 2,
    "dram_write_bytes": 100,
    "l2_read_sectors": 1000,
    "l2_tex_read_sectors": 900,
    "l2_hit_pct": 81.5,
}


def order_kernel(leave_out=(), **changes):
    """Return one kernel of a file of orders as it is stored."""
    numbers = ORDER_NUMBERS | changes
    return {
        "name": "triton_swizzled_kernel",
        "grid": [2048, 1, 1],
        "counters": {
            counters.METRICS[name]: value
            for name, value in numbers.items()
            if name not in leave_out
        },
    }


def order_file(launches, gpu=GPU, unknown=(), block=BLOCK):
    """Return entries of orders; `launches` maps (edge, GROUP_M), or a label, to a stored kernel."""
    run = PROVENANCE | {"gpu": gpu}
    setting = {"of": "order", "dtype": "float16", "block": list(block)}
    labels = (x if isinstance(x, str) else counters.order_label(*x) for x in launches)
    return [
        Entry(
            "a job",
            setting | {"label": label},
            {"kernels": [kernel], "unknown": list(unknown)},
            {},
            run,
        )
        for label, kernel in zip(labels, launches.values(), strict=True)
    ]
