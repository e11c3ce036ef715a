// The twin of cuda_thread_tile_1d: a column of ROWS elements of C for each thread.
// As there, -maxrregcount=40, so that three blocks share a multiprocessor.
using T = float;
constexpr int TILE_M = 64, TILE_N = 64, TILE_K = 8;
constexpr int ROWS = 8;
constexpr int A_ROW = TILE_M + 4;

extern "C" __global__ void cuda_thread_tile_1d_kernel(
    const T* a, const T* b, T* c, int M, int N, int K) {
    __shared__ __align__(16) T a_tile[TILE_K][A_ROW];
    __shared__ __align__(16) T b_tile[TILE_K][TILE_N];
    T acc[ROWS];
    const int top = blockIdx.y * TILE_M, left = blockIdx.x * TILE_N;
    const int t = threadIdx.x;
    const int row = t / TILE_N * ROWS, col = t % TILE_N;  // of C, in the block's tile
    const int a_row = t / TILE_K, a_col = t % TILE_K;     // of A's tile: what this thread loads
    const int b_row = t / TILE_N, b_col = t % TILE_N;
    for (int i = 0; i < ROWS; i++) {
        acc[i] = 0;
    }
    for (int start = 0; start < K; start += TILE_K) {
        const bool in_a = top + a_row < M && start + a_col < K;
        const bool in_b = start + b_row < K && left + b_col < N;
        a_tile[a_col][a_row] = in_a ? a[(top + a_row) * K + start + a_col] : T(0);
        b_tile[b_row][b_col] = in_b ? b[(start + b_row) * N + left + b_col] : T(0);
        __syncthreads();
        for (int k = 0; k < TILE_K; k++) {
            const T b_element = b_tile[k][col];
            for (int i = 0; i < ROWS; i++) {
                acc[i] += a_tile[k][row + i] * b_element;
            }
        }
        __syncthreads();
    }
    for (int i = 0; i < ROWS; i++) {
        if (top + row + i < M && left + col < N) {
            c[(top + row + i) * N + left + col] = acc[i];
        }
    }
}
