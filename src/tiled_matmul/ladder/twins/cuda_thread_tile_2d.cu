// The twin of cuda_thread_tile_2d: a tile of ROWS×COLUMNS elements of C for each thread.
using T = float;
constexpr int ROWS = 8, COLUMNS = 8;
constexpr int TILE_M = 16 * ROWS, TILE_N = 16 * COLUMNS, TILE_K = 8;
constexpr int A_ROW = TILE_M + 4;  // padded, so that storing A transposed meets no bank conflict
constexpr int THREADS = 256;

extern "C" __global__ void cuda_thread_tile_2d_kernel(
    const T* a, const T* b, T* c, int M, int N, int K) {
    __shared__ __align__(16) T a_tile[TILE_K][A_ROW];
    __shared__ __align__(16) T b_tile[TILE_K][TILE_N];
    T acc[ROWS][COLUMNS], a_part[ROWS], b_part[COLUMNS];
    const int top = blockIdx.y * TILE_M, left = blockIdx.x * TILE_N;
    const int t = threadIdx.x;
    const int row = t / 16 * 4, col = t % 16 * 4;  // of the thread's first quad
    for (int i = 0; i < ROWS; i++) {
        for (int j = 0; j < COLUMNS; j++) {
            acc[i][j] = 0;
        }
    }
    for (int start = 0; start < K; start += TILE_K) {
        for (int n = 0; n < TILE_M / 32; n++) {  // 256 threads load 32 rows of 8
            const int i = t / 8 + n * 32, k = t % 8;
            const bool in_a = top + i < M && start + k < K;
            a_tile[k][i] = in_a ? a[(top + i) * K + start + k] : T(0);
        }
        for (int n = 0; n < TILE_N / 32; n++) {
            const int e = t + n * THREADS;
            const int k = e / TILE_N, j = e % TILE_N;
            const bool in_b = start + k < K && left + j < N;
            b_tile[k][j] = in_b ? b[(start + k) * N + left + j] : T(0);
        }
        __syncthreads();
        for (int k = 0; k < TILE_K; k++) {
            for (int i = 0; i < ROWS; i++) {
                a_part[i] = a_tile[k][row + i % 4 + i / 4 * 64];
            }
            for (int j = 0; j < COLUMNS; j++) {
                b_part[j] = b_tile[k][col + j % 4 + j / 4 * 64];
            }
            for (int i = 0; i < ROWS; i++) {
                for (int j = 0; j < COLUMNS; j++) {
                    acc[i][j] += a_part[i] * b_part[j];
                }
            }
        }
        __syncthreads();
    }
    for (int i = 0; i < ROWS; i++) {
        const int y = top + row + i % 4 + i / 4 * 64;
        for (int j = 0; j < COLUMNS; j++) {
            const int x = left + col + j % 4 + j / 4 * 64;
            if (y < M && x < N) {
                c[y * N + x] = acc[i][j];
            }
        }
    }
}
