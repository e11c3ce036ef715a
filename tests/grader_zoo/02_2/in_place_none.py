# status: WRONG
# words: legal('in place', 'ij') is False; hint 1
# exercise 02.2: the illegal interchange
def legal(nest, pair):
    table = {
        "product": ["ij", "ik", "jk"],
        "total": [],
        "wave": ["ij"],
        "slant": [],
        "paths": ["ij"],
        "in place": [],
    }
    return pair in table[nest]
