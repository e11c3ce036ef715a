# status: WRONG
# words: One tile of that edge fits; hint 1
# exercise 03.2: the tile for a cache
def largest_tile(cache_bytes, bytes_each):
    return math.isqrt(cache_bytes // bytes_each)
