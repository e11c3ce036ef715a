# status: WRONG
# words: elements of 4 bytes
# exercise 03.2: the tile for a cache
def largest_tile(cache_bytes, bytes_each):
    return math.isqrt(cache_bytes // 12)
