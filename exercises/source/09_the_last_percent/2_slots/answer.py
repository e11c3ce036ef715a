def largest_cost(counted):
    cycles = counted["cycles"] * counted["multiprocessors"]
    slots = SLOTS * cycles
    fmas = counted["thread_fmas"] / LANES
    useful = fmas / slots
    other = (counted["instructions"] - fmas) / slots
    empty = 1 - useful - other
    threads = counted["threads"]
    blocks = {
        "registers": REGISTERS // (counted["registers"] * threads),
        "shared bytes": SHARED_BYTES // counted["shared_bytes"],
        "threads": MOST_THREADS // threads,
    }
    if other >= empty:
        limit = "instructions"
    elif counted["wavefronts"] >= 0.9 * cycles:
        limit = "shared memory"
    else:
        limit = min(blocks, key=blocks.get)
    return useful, other, empty, limit, 1 / (1 - max(other, empty))
