// The twin of cuda_unrolled: the loop over k unrolled.
// As there, -maxrregcount=128.
using T = float;
constexpr int TILE_M = 128, TILE_N = 128, TILE_K = 8;
constexpr int A_ROW = TILE_M + 4;

struct alignas(16) Four {
    T of[4];
};

__device__ Four load4(const T* at) { return *reinterpret_cast<const Four*>(at); }
__device__ void store4(T* at, Four four) { *reinterpret_cast<Four*>(at) = four; }

extern "C" __global__ void cuda_unrolled_kernel(
    const T* a, const T* b, T* c, int M, int N, int K) {
    __shared__ __align__(16) T a_tile[2][TILE_K][A_ROW];
    __shared__ __align__(16) T b_tile[2][TILE_K][TILE_N];
    T acc[8][8];
    Four a_part[2], b_part[2];
    const int top = blockIdx.y * TILE_M, left = blockIdx.x * TILE_N;
    const int t = threadIdx.x;
    const int row = t / 16 * 4, col = t % 16 * 4;  // of the thread's first quad
    const int a_row = t / 2, a_col = t % 2 * 4;    // of the four that it loads of A
    const int b_row = t / 32, b_col = t % 32 * 4;
    size_t a_from = size_t(min(top + a_row, M - 1)) * K + a_col;
    size_t b_from = size_t(b_row) * N + min(left + b_col, N - 4);
    for (int i = 0; i < 8; i++) {
        for (int j = 0; j < 8; j++) {
            acc[i][j] = 0;
        }
    }
    int at = (K - 1) % TILE_K + 1;  // where the second tile begins
    Four a_four = {}, b_four = {};
    if (a_col < at) {
        a_four = load4(&a[a_from]);
    }
    if (b_row < at) {
        b_four = load4(&b[b_from]);
    }
    a_from += at;
    b_from += size_t(at) * N;
    int now = 0;
    while (true) {
        for (int n = 0; n < 4; n++) {
            a_tile[now][a_col + n][a_row] = a_four.of[n];
        }
        store4(&b_tile[now][b_row][b_col], b_four);
        __syncthreads();
        if (at < K) {  // load the next tile
            a_four = load4(&a[a_from]);
            b_four = load4(&b[b_from]);
        }
#pragma unroll
        for (int k = 0; k < TILE_K; k++) {
            for (int h = 0; h < 2; h++) {
                a_part[h] = load4(&a_tile[now][k][row + h * (TILE_M / 2)]);
                b_part[h] = load4(&b_tile[now][k][col + h * (TILE_N / 2)]);
            }
            for (int j = 0; j < 8; j++) {  // down one column, up the next
                for (int step = 0; step < 8; step++) {
                    const int i = j % 2 ? 7 - step : step;
                    acc[i][j] += a_part[i / 4].of[i % 4] * b_part[j / 4].of[j % 4];
                }
            }
        }
        if (at >= K) {
            break;
        }
        now = 1 - now;
        at += TILE_K;
        a_from += TILE_K;
        b_from += size_t(TILE_K) * N;
    }
    for (int i = 0; i < 8; i++) {
        const int y = top + row + i % 4 + i / 4 * (TILE_M / 2);
        for (int j = 0; j < 8; j++) {
            const int x = left + col + j % 4 + j / 4 * (TILE_N / 2);
            if (y < M && x < N) {
                c[size_t(y) * N + x] = acc[i][j];
            }
        }
    }
}
