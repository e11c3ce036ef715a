# status: PASS
# words:
# exercise 02.2: the illegal interchange
def legal(nest, pair):
    if nest == "product":
        return True
    return nest in ("wave", "paths", "in place") and pair == "ij"
