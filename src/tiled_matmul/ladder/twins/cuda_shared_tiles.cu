// The twin of cuda_shared_tiles: a block loads each element once, and its threads share it.
using T = float;
constexpr int TILE = 16;

extern "C" __global__ void cuda_shared_tiles_kernel(
    const T* a, const T* b, T* c, int M, int N, int K) {
    __shared__ T a_tile[TILE][TILE];
    __shared__ T b_tile[TILE][TILE];
    const int x = threadIdx.x, y = threadIdx.y;
    const int row = blockIdx.y * TILE + y;
    const int col = blockIdx.x * TILE + x;
    T acc = 0;
    for (int start = 0; start < K; start += TILE) {
        const bool in_a = row < M && start + x < K;
        const bool in_b = start + y < K && col < N;
        a_tile[y][x] = in_a ? a[row * K + start + x] : T(0);
        b_tile[y][x] = in_b ? b[(start + y) * N + col] : T(0);
        __syncthreads();
        for (int k = 0; k < TILE; k++) {
            acc += a_tile[y][k] * b_tile[k][x];
        }
        __syncthreads();
    }
    if (row < M && col < N) {
        c[row * N + col] = acc;
    }
}
