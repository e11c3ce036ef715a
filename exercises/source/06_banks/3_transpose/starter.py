@cuda.jit
def transpose(a, c):
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    top, left = cuda.blockIdx.y * EDGE, cuda.blockIdx.x * EDGE
    # your code: roughly 10 lines
    for i in range(y, EDGE, ROWS):
        if top + i < a.shape[0] and left + x < a.shape[1]:
            c[left + x, top + i] = a[top + i, left + x]
