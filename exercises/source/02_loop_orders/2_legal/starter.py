def legal(nest, pair):
    table = {
        # your code: roughly 6 lines
        "product": [],
        "total": [],
        "wave": [],
        "slant": [],
        "paths": [],
        "in place": [],
    }
    return pair in table[nest]
