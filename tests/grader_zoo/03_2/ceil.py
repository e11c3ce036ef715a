# status: WRONG
# words: more bytes than the cache has; hint 3
# exercise 03.2: the tile for a cache
def largest_tile(cache_bytes, bytes_each):
    return math.ceil(math.sqrt(cache_bytes / 3 / bytes_each))
