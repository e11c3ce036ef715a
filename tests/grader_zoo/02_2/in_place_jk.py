# status: WRONG
# words: legal('in place', 'jk') is True; hint 3
# exercise 02.2: the illegal interchange
def legal(nest, pair):
    table = {
        "product": ["ij", "ik", "jk"],
        "total": [],
        "wave": ["ij"],
        "slant": [],
        "paths": ["ij"],
        "in place": ["ij", "jk"],
    }
    return pair in table[nest]
