# status: WRONG
# words: largest_tile(11, 4) is 1; the largest T is 0
# exercise 03.2: the tile for a cache
def largest_tile(cache_bytes, bytes_each):
    return max(1, math.isqrt(cache_bytes // (3 * bytes_each)))
