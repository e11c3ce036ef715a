# status: PASS
# words:
# exercise 02.2: the illegal interchange
def legal(nest, pair):
    table = {
        "product": ["jk", "ik", "ij"],
        "total": [],
        "wave": ["ij"],
        "slant": [],
        "paths": ["ij"],
        "in place": ["ij"],
    }
    return pair in table[nest]
