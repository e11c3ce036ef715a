# status: WRONG
# words: more bytes than the cache has
# exercise 03.2: the tile for a cache
def largest_tile(cache_bytes, bytes_each):
    return round(math.sqrt(cache_bytes / 3 / bytes_each))
