# status: WRONG
# words: KeyError
# exercise 02.2: the illegal interchange
def legal(nest, pair):
    table = {
        "product": ["ij", "ik", "jk"],
        "wave": ["ij"],
    }
    return pair in table[nest]
