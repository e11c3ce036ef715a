# status: WRONG
# words: gives other bits; s[0]; hint 1
# exercise 02.2: the illegal interchange
def legal(nest, pair):
    table = {
        "product": ["ij", "ik", "jk"],
        "total": ["ij"],
        "wave": ["ij"],
        "slant": [],
        "paths": ["ij"],
        "in place": ["ij"],
    }
    return pair in table[nest]
