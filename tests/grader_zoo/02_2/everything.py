# status: WRONG
# words: legal('total', 'ij') is True; Turn (i, j) = (0, 1) writes s[0], then turn (1, 0) reads it; hint 1
# exercise 02.2: the illegal interchange
def legal(nest, pair):
    table = {
        "product": ["ij", "ik", "jk"],
        "total": ["ij"],
        "wave": ["ij"],
        "slant": ["ij"],
        "paths": ["ij", "ik", "jk"],
        "in place": ["ij", "ik", "jk"],
    }
    return pair in table[nest]
