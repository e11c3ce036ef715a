# status: WRONG
# words: largest_tile(49152, 4) is 1, should be 64; hint 1
# exercise 03.2: the tile for a cache
def largest_tile(cache_bytes, bytes_each):
    # your code: roughly 4 lines
    return 1
