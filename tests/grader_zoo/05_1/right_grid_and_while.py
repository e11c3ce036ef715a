# status: PASS
# words:
# exercise 05.1: the 9×9 puzzle
@cuda.jit
def puzzle(left, right, out):
    j, i = cuda.grid(2)
    ti, tj = i % TPB, j % TPB
    ours = cuda.shared.array((2, TPB, TPB), left.dtype)
    total = out.dtype.type(0)
    k = 0
    while k < left.shape[1]:
        ours[0, ti, tj] = left[i, k + tj]
        ours[1, ti, tj] = right[k + ti, j]
        cuda.syncthreads()
        total += ours[0, ti, 0] * ours[1, 0, tj]
        total += ours[0, ti, 1] * ours[1, 1, tj]
        total += ours[0, ti, 2] * ours[1, 2, tj]
        cuda.syncthreads()
        k += TPB
    out[i, j] = total
