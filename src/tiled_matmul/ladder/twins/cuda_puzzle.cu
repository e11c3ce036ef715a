// The twin of cuda_puzzle: shared tiles of 3×3; the last tile along K is shorter.
using T = float;
constexpr int TPB = 3;  // threads per block, along each axis

extern "C" __global__ void cuda_puzzle_kernel(const T* a, const T* b, T* c, int M, int N, int K) {
    __shared__ T a_shared[TPB][TPB];
    __shared__ T b_shared[TPB][TPB];
    const int local_row = threadIdx.y, local_col = threadIdx.x;
    const int row = blockIdx.y * TPB + local_row;
    const int col = blockIdx.x * TPB + local_col;
    const bool inside = row < M && col < N;
    T acc = 0;
    for (int start = 0; start < K; start += TPB) {
        if (row < M && start + local_col < K) {
            a_shared[local_row][local_col] = a[row * K + start + local_col];
        }
        if (start + local_row < K && col < N) {
            b_shared[local_row][local_col] = b[(start + local_row) * N + col];
        }
        __syncthreads();
        if (inside) {
            for (int k = 0; k < min(TPB, K - start); k++) {
                acc += a_shared[local_row][k] * b_shared[k][local_col];
            }
        }
        __syncthreads();
    }
    if (inside) {
        c[row * N + col] = acc;
    }
}
