// The twin of cuda_naive: one thread per element of C, and threadIdx.x counts rows.
using T = float;

extern "C" __global__ void cuda_naive_kernel(const T* a, const T* b, T* c, int M, int N, int K) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    const int col = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < M && col < N) {
        T acc = a[row * K] * b[col];
        for (int k = 1; k < K; k++) {
            acc += a[row * K + k] * b[k * N + col];
        }
        c[row * N + col] = acc;
    }
}
