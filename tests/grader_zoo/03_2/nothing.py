# status: WRONG
# words: Does it end with a `return`
# exercise 03.2: the tile for a cache
def largest_tile(cache_bytes, bytes_each):
    print(math.isqrt(cache_bytes // (3 * bytes_each)))
