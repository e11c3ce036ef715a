"""A file of counters with made-up numbers, for tests: what a GPU would have said."""

from tiled_matmul.measure import counters

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


def file(rungs, size=4096, gpu=GPU, unknown=()):
    """Return what a file holds; `rungs` maps names to lists of stored kernels."""
    return {
        "provenance": dict.fromkeys(counters.PROVENANCE, "x") | {"gpu": gpu},
        "problem": {"m": size, "n": size, "k": size, "dtype": "float32"},
        "unknown": list(unknown),
        "rungs": rungs,
    }
