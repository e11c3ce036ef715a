# status: PASS
# words:
# exercise 03.2: the tile for a cache
import math


def largest_tile(cache_bytes, bytes_each):
    return math.isqrt(cache_bytes // 3 // bytes_each)
