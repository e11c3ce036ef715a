// The twin of cuda_article: shared tiles in which threadIdx.x counts rows, a wrong turn.
using T = float;
constexpr int TILE = 16;

extern "C" __global__ void cuda_article_kernel(const T* A, const T* B, T* C, int M, int N, int K) {
    __shared__ T tile_A[TILE][TILE];
    __shared__ T tile_B[TILE][TILE];
    const int i = blockIdx.x * blockDim.x;
    const int j = blockIdx.y * blockDim.y;
    const int i0 = threadIdx.x;
    const int j0 = threadIdx.y;
    T total = 0;
    for (int k = 0; k < K; k += TILE) {
        if (i + i0 < M && k + j0 < K) {
            tile_A[i0][j0] = A[(i + i0) * K + (k + j0)];
        } else {
            tile_A[i0][j0] = 0;
        }
        if (j + j0 < N && k + i0 < K) {
            tile_B[i0][j0] = B[(k + i0) * N + (j + j0)];
        } else {
            tile_B[i0][j0] = 0;
        }
        __syncthreads();
        for (int k0 = 0; k0 < TILE; k0++) {
            total += tile_A[i0][k0] * tile_B[k0][j0];
        }
        __syncthreads();
    }
    if (i + i0 < M && j + j0 < N) {
        C[(i + i0) * N + (j + j0)] = total;
    }
}
