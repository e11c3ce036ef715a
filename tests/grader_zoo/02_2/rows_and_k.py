# status: WRONG
# words: legal('in place', 'ik') is True; Run as kji; hint 3
# exercise 02.2: the illegal interchange
def legal(nest, pair):
    table = {
        "product": ["ij", "ik", "jk"],
        "total": [],
        "wave": ["ij"],
        "slant": [],
        "paths": ["ij"],
        "in place": ["ij", "ik"],
    }
    return pair in table[nest]
