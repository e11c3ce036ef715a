# status: WRONG
# words: the largest power of two
# exercise 03.2: the tile for a cache
def largest_tile(cache_bytes, bytes_each):
    edge = 1
    while 3 * (2 * edge) ** 2 * bytes_each <= cache_bytes:
        edge *= 2
    return edge
