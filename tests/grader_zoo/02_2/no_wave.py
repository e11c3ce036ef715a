# status: WRONG
# words: legal('wave', 'ij') is False; Run as ji it gives the same bits; hint 1
# exercise 02.2: the illegal interchange
def legal(nest, pair):
    table = {
        "product": ["ij", "ik", "jk"],
        "total": [],
        "wave": [],
        "slant": [],
        "paths": ["ij"],
        "in place": ["ij"],
    }
    return pair in table[nest]
