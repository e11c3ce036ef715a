@cuda.jit
def rooted(a, c):
    part = cuda.shared.array(THREADS, a.dtype)
    t, row = cuda.threadIdx.x, cuda.blockIdx.x
    acc = c.dtype.type(0)
    for col in range(t, a.shape[1], THREADS):
        value = a[row, col]
        acc += value * value
    part[t] = acc
    half = THREADS // 2
    while half > 0:
        cuda.syncthreads()
        if t < half:
            part[t] += part[t + half]
        half //= 2
    cuda.syncthreads()
    root = math.sqrt(part[0] / a.shape[1])
    for col in range(t, a.shape[1], THREADS):
        c[row, col] = a[row, col] / root
