# status: PASS
# words: 
# exercise 07.3: read a roofline
def roofs(tile_m, tile_n, own_m, own_n):
    work = 2 * tile_m * tile_n
    from_global = FLOAT * (tile_m + tile_n) / GLOBAL
    threads = tile_m * tile_n / (own_m * own_n)
    from_shared = threads * FLOAT * (own_m + own_n) / SHARED
    computing = work / PEAK
    names = ["arithmetic", "shared memory", "global memory"]
    times = [computing, from_shared, from_global]
    longest = max(times)
    word = [name for name, time in zip(names, times) if time >= longest * (1 - 1e-12)][0]
    return work / max(computing, from_global), work / max(computing, from_shared), word
