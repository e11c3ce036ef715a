def largest_tile(cache_bytes, bytes_each):
    edge = 0
    while 3 * (edge + 1) ** 2 * bytes_each <= cache_bytes:
        edge += 1
    return edge
