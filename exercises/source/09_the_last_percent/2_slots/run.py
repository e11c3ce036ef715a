from tiled_matmul.page import counters

RUNGS = ("cuda_vectorised", "cuda_async", "cuda_best", "cublas")
for rung, threads in zip(RUNGS, (256, 128, 256, 256), strict=True):
    counted = counters.reference()[rung].values
    counted = {
        "cycles": counted["time_ns"] * counted["clock_hz"] / 1e9,
        "multiprocessors": 132,
        "instructions": counted["instructions"],
        "thread_fmas": counted["thread_fmas"],
        "wavefronts": counted["shared_load_wavefronts"] + counted["shared_store_wavefronts"],
        "threads": threads,
        "registers": counted["registers"],
        "shared_bytes": counted["shared_bytes"],
    }
    *shares, limit, gain = largest_cost(counted)
    print(f"{rung:16}", *(f"{share:5.1%}" for share in shares), f" {limit}, {gain:.2f} times")
