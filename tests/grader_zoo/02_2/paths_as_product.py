# status: WRONG
# words: legal('paths', 'ik') is True; Run as ikj; hint 3
# exercise 02.2: the illegal interchange
def legal(nest, pair):
    table = {
        "product": ["ij", "ik", "jk"],
        "total": [],
        "wave": ["ij"],
        "slant": [],
        "paths": ["ij", "ik", "jk"],
        "in place": ["ij"],
    }
    return pair in table[nest]
