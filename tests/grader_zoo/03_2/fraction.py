# status: WRONG
# words: round down; hint 3
# exercise 03.2: the tile for a cache
def largest_tile(cache_bytes, bytes_each):
    return (cache_bytes / 3 / bytes_each) ** 0.5
