// The twin of cuda_vectorised: four elements in one load or store.
using T = float;
constexpr int TILE_M = 128, TILE_N = 128, TILE_K = 8;
constexpr int A_ROW = TILE_M + 4;

struct alignas(16) Four {
    T of[4];
};

__device__ Four load4(const T* at) { return *reinterpret_cast<const Four*>(at); }
__device__ void store4(T* at, Four four) { *reinterpret_cast<Four*>(at) = four; }

extern "C" __global__ void cuda_vectorised_kernel(
    const T* a, const T* b, T* c, int M, int N, int K) {
    __shared__ __align__(16) T a_tile[TILE_K][A_ROW];
    __shared__ __align__(16) T b_tile[TILE_K][TILE_N];
    Four acc[8][2], a_part[2], b_part[2];
    const int top = blockIdx.y * TILE_M, left = blockIdx.x * TILE_N;
    const int t = threadIdx.x;
    const int row = t / 16 * 4, col = t % 16 * 4;   // of the thread's first quad
    const int a_row = t / 2, a_col = t % 2 * 4;     // of the four that it loads of A
    const int b_row = t / 32, b_col = t % 32 * 4;
    for (int i = 0; i < 8; i++) {
        for (int j = 0; j < 8; j++) {
            acc[i][j / 4].of[j % 4] = 0;
        }
    }
    for (int start = 0; start < K; start += TILE_K) {
        Four a_four = {}, b_four = {};
        if (top + a_row < M && start + a_col < K) {  // K is a multiple of 4: all four, or none
            a_four = load4(&a[(top + a_row) * K + start + a_col]);
        }
        if (start + b_row < K && left + b_col < N) {
            b_four = load4(&b[(start + b_row) * N + left + b_col]);
        }
        for (int n = 0; n < 4; n++) {
            a_tile[a_col + n][a_row] = a_four.of[n];
        }
        store4(&b_tile[b_row][b_col], b_four);
        __syncthreads();
        for (int k = 0; k < TILE_K; k++) {
            for (int h = 0; h < 2; h++) {
                a_part[h] = load4(&a_tile[k][row + h * 64]);
                b_part[h] = load4(&b_tile[k][col + h * 64]);
            }
            for (int i = 0; i < 8; i++) {
                for (int j = 0; j < 8; j++) {
                    acc[i][j / 4].of[j % 4] += a_part[i / 4].of[i % 4] * b_part[j / 4].of[j % 4];
                }
            }
        }
        __syncthreads();
    }
    for (int i = 0; i < 8; i++) {
        const int y = top + row + i % 4 + i / 4 * 64;
        for (int h = 0; h < 2; h++) {
            const int x = left + col + h * 64;
            if (y < M && x < N) {
                store4(&c[y * N + x], acc[i][h]);
            }
        }
    }
}
