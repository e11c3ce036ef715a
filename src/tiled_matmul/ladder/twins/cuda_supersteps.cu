// The twin of cuda_supersteps: shared tiles, and a barrier after every step of the work.
using T = float;
constexpr int TILE = 16;
constexpr int ELEMENTS = 256;  // of a tile

extern "C" __global__ void cuda_supersteps_kernel(
    const T* a, const T* b, T* c, int M, int N, int K) {
    __shared__ T tile_a[ELEMENTS];
    __shared__ T tile_b[ELEMENTS];
    const int tx = threadIdx.x, ty = threadIdx.y;
    const int row = ty + blockDim.y * blockIdx.y;
    const int col = tx + blockDim.x * blockIdx.x;
    T acc = 0;
    for (int t = 0; t < (K + TILE - 1) / TILE; t++) {
        // Superstep 1: load a tile of A
        const int a_col = t * TILE + tx;
        if (row < M && a_col < K) {
            tile_a[ty * TILE + tx] = a[row * K + a_col];
        } else {
            tile_a[ty * TILE + tx] = 0;
        }
        __syncthreads();
        // Superstep 2: load a tile of B
        const int b_row = t * TILE + ty;
        if (b_row < K && col < N) {
            tile_b[ty * TILE + tx] = b[b_row * N + col];
        } else {
            tile_b[ty * TILE + tx] = 0;
        }
        __syncthreads();
        // Superstep 3: multiply
        for (int i = 0; i < TILE; i++) {
            acc += tile_a[ty * TILE + i] * tile_b[i * TILE + tx];
        }
        __syncthreads();
    }
    if (row < M && col < N) {
        c[row * N + col] = acc;
    }
}
