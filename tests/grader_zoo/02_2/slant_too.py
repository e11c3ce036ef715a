# status: WRONG
# words: legal('slant', 'ij') is True; writes x[1, 2], then turn (2, 1) reads it; hint 2
# exercise 02.2: the illegal interchange
def legal(nest, pair):
    table = {
        "product": ["ij", "ik", "jk"],
        "total": [],
        "wave": ["ij"],
        "slant": ["ij"],
        "paths": ["ij"],
        "in place": ["ij"],
    }
    return pair in table[nest]
