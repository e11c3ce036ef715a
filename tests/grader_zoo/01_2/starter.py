# status: WRONG
# words: costs(64, 64, 64, 4) is [0, 0], should be [524288, 49152]
# exercise 01.2: what a product must cost
def costs(m, n, k, bytes_each):
    # your code: roughly 2 lines
    flops = 0
    size = 0
    return flops, size
