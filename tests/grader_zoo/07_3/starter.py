# status: WRONG
# words: the arithmetic's roof; hint 2
# exercise 07.3: read a roofline
def roofs(tile_m, tile_n, own_m, own_n):
    return PEAK, PEAK, "arithmetic"
