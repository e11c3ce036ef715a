// The twin of cuda_transposed: A, B or both lie in memory column by column.
using T = float;
constexpr int TILE = 32;
constexpr int PITCH = TILE + 1;
constexpr bool A_BY_COLUMNS = true;
constexpr bool B_BY_COLUMNS = true;

__device__ int place(bool by_columns, int row, int col, int rows, int cols) {
    return by_columns ? col * rows + row : row * cols + col;
}

extern "C" __global__ void cuda_transposed_kernel(
    const T* a, const T* b, T* c, int M, int N, int K) {
    __shared__ T a_tile[TILE][PITCH];
    __shared__ T b_tile[TILE][PITCH];
    const int x = threadIdx.x, y = threadIdx.y;
    const int a_row = A_BY_COLUMNS ? x : y, a_col = A_BY_COLUMNS ? y : x;
    const int b_row = B_BY_COLUMNS ? x : y, b_col = B_BY_COLUMNS ? y : x;
    const int top = blockIdx.y * TILE, left = blockIdx.x * TILE;
    T acc = 0;
    for (int start = 0; start < K; start += TILE) {
        const bool a_inside = top + a_row < M && start + a_col < K;
        const bool b_inside = start + b_row < K && left + b_col < N;
        a_tile[a_row][a_col] =
            a_inside ? a[place(A_BY_COLUMNS, top + a_row, start + a_col, M, K)] : T(0);
        b_tile[b_row][b_col] =
            b_inside ? b[place(B_BY_COLUMNS, start + b_row, left + b_col, K, N)] : T(0);
        __syncthreads();
        for (int k = 0; k < TILE; k++) {
            acc += a_tile[y][k] * b_tile[k][x];
        }
        __syncthreads();
    }
    if (top + y < M && left + x < N) {
        c[(top + y) * N + left + x] = acc;
    }
}
