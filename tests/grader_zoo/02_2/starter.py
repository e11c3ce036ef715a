# status: WRONG
# words: legal('product', 'ij') is False, should be True; the same bits; hint 1
# exercise 02.2: the illegal interchange
def legal(nest, pair):
    table = {
        "product": [],
        "total": [],
        "wave": [],
        "slant": [],
        "paths": [],
        "in place": [],
    }
    return pair in table[nest]
