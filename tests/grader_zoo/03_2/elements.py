# status: WRONG
# words: each has `bytes_each`; hint 1
# exercise 03.2: the tile for a cache
def largest_tile(cache_bytes, bytes_each):
    return math.isqrt(cache_bytes // 3)
