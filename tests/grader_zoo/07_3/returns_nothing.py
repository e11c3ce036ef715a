# status: WRONG
# words: Does it end with a `return`; hint 1
# exercise 07.3: read a roofline
def roofs(tile_m, tile_n, own_m, own_n):
    lower = min(PEAK, 2 * tile_m * tile_n / (FLOAT * (tile_m + tile_n)) * GLOBAL)
