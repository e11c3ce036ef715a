# status: WRONG
# words: legal('product', 'ik') is False; the same bits
# exercise 02.2: the illegal interchange
def legal(nest, pair):
    table = {
        "product": ["ij"],
        "total": [],
        "wave": ["ij"],
        "slant": [],
        "paths": ["ij"],
        "in place": ["ij"],
    }
    return pair in table[nest]
