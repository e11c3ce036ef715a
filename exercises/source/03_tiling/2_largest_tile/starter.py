def largest_tile(cache_bytes, bytes_each):
    # your code: roughly 4 lines
    return 1
