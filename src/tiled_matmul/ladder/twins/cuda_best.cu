// The twin of cuda_best: the tiles of a block, a warp and a thread are those of its Setting.
// As there, -maxrregcount is the Setting's; 255 for this one.
using T = float;
constexpr int TILE_M = 128, TILE_N = 256, TILE_K = 8;  // of C for a block, and along K
constexpr int WARP_M = 32, WARP_N = 128;               // of C for a warp
constexpr int ROWS = 8, COLUMNS = 16;                  // of C for a thread
constexpr int LANES_M = WARP_M / ROWS, LANES_N = WARP_N / COLUMNS;
constexpr int WARPS_N = TILE_N / WARP_N;
constexpr int THREADS = 256;
constexpr int A_ROW = TILE_M + 4;
constexpr bool C_FOURS = true;  // is C made of aligned fours?
constexpr int A_STEP = THREADS / TILE_K, B_STEP = THREADS * 4 / TILE_N;  // rows copied at once
constexpr int A_COPIES = TILE_M / A_STEP, B_COPIES = TILE_K / B_STEP;

struct alignas(16) Four {
    T of[4];
};

__device__ Four load4(const T* at) { return *reinterpret_cast<const Four*>(at); }
__device__ void store4(T* at, Four four) { *reinterpret_cast<Four*>(at) = four; }

// Copies an element to shared memory, or stores a zero if it is not `present`.
__device__ void copy_async(T* target, const T* source, bool present) {
    const unsigned to = __cvta_generic_to_shared(target);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;"
                 :: "r"(to), "l"(source), "r"(present ? 4 : 0) : "memory");
}

// Copies four elements at once; both addresses are multiples of 16 bytes.
__device__ void copy_async4(T* target, const T* source, bool present) {
    const unsigned to = __cvta_generic_to_shared(target);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :: "r"(to), "l"(source), "r"(present ? 16 : 0) : "memory");
}

extern "C" __global__ void cuda_best_kernel(
    const T* a, const T* b, T* c, int M, int N, int K, T alpha) {
    __shared__ __align__(16) T a_tile[2][TILE_K][A_ROW];
    __shared__ __align__(16) T b_tile[2][TILE_K][TILE_N];
    Four acc[ROWS][COLUMNS / 4], a_part[2][ROWS / 4], b_part[2][COLUMNS / 4];
    const int B_ROW = (N + 3) / 4 * 4;  // the launcher pads rows of B to fours
    const int top = blockIdx.y * TILE_M, left = blockIdx.x * TILE_N;
    const int t = threadIdx.x;
    // What the thread copies: elements of A at (a_k, a_m + …), fours of B at (b_k + …, b_n).
    const int a_k = t % TILE_K, a_m = t / TILE_K;
    const int b_k = t * 4 / TILE_N, b_n = t * 4 % TILE_N;
    const int rows = max(M - (top + a_m), 0);  // of A from the thread's first on
    const int columns = max(B_ROW - (left + b_n), 0);  // of B
    size_t a_from = size_t(top + a_m) * K + a_k;
    size_t b_from = size_t(b_k) * B_ROW + left + b_n;
    // What it multiplies: quads of four from (m, n) on.
    const int warp = t / 32, lane = t % 32;
    const int m = warp / WARPS_N * WARP_M + lane / LANES_N * 4;
    const int n = warp % WARPS_N * WARP_N + lane % LANES_N * 4;
    for (int i = 0; i < ROWS; i++) {
        for (int j = 0; j < COLUMNS; j++) {
            acc[i][j / 4].of[j % 4] = 0;
        }
    }
    int use = 0, fill = 1;
    int at = (K - 1) % TILE_K + 1;  // where the second tile begins
    for (int s = 0; s < A_COPIES; s++) {
        const size_t source = a_from + size_t(s * A_STEP) * K;
        const bool there = a_k < at && s * A_STEP < rows;
        copy_async(&a_tile[use][a_k][a_m + s * A_STEP], &a[source], there);
    }
    for (int s = 0; s < B_COPIES; s++) {
        const int k = b_k + s * B_STEP;
        const size_t source = b_from + size_t(s * B_STEP) * B_ROW;
        copy_async4(&b_tile[use][k][b_n], &b[source], k < at && columns > 0);
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
    asm volatile("cp.async.wait_group 0;" ::: "memory");
    __syncthreads();
    for (int q = 0; q < ROWS / 4; q++) {
        a_part[0][q] = load4(&a_tile[use][0][m + q * 4 * LANES_M]);
    }
    for (int q = 0; q < COLUMNS / 4; q++) {
        b_part[0][q] = load4(&b_tile[use][0][n + q * 4 * LANES_N]);
    }
    a_from += at;
    b_from += size_t(at) * B_ROW;
    while (at < K + TILE_K) {
#pragma unroll
        for (int k = 0; k < TILE_K; k++) {
            const int now = k % 2, then = (k + 1) % 2;
            if (k == TILE_K - 1) {
                asm volatile("cp.async.wait_group 0;" ::: "memory");
                __syncthreads();
                const int filled = fill;
                fill = use;
                use = filled;
            }
            const int k_then = (k + 1) % TILE_K;
            for (int q = 0; q < ROWS / 4; q++) {
                a_part[then][q] = load4(&a_tile[use][k_then][m + q * 4 * LANES_M]);
            }
            for (int q = 0; q < COLUMNS / 4; q++) {
                b_part[then][q] = load4(&b_tile[use][k_then][n + q * 4 * LANES_N]);
            }
            if (k == 0) {
                for (int s = 0; s < A_COPIES; s++) {
                    const size_t source = a_from + size_t(s * A_STEP) * K;
                    const bool there = at < K && s * A_STEP < rows;
                    copy_async(&a_tile[fill][a_k][a_m + s * A_STEP], &a[source], there);
                }
                const bool there = at < K && columns > 0;
                for (int s = 0; s < B_COPIES; s++) {
                    const size_t source = b_from + size_t(s * B_STEP) * B_ROW;
                    copy_async4(&b_tile[fill][b_k + s * B_STEP][b_n], &b[source], there);
                }
                asm volatile("cp.async.commit_group;" ::: "memory");
                at += TILE_K;
                a_from += TILE_K;
                b_from += size_t(TILE_K) * B_ROW;
            }
            for (int j = 0; j < COLUMNS; j++) {  // down one column, up the next
                for (int step = 0; step < ROWS; step++) {
                    const int i = j % 2 ? ROWS - 1 - step : step;
                    acc[i][j / 4].of[j % 4] +=
                        a_part[now][i / 4].of[i % 4] * b_part[now][j / 4].of[j % 4];
                }
            }
        }
    }
    for (int i = 0; i < ROWS; i++) {
        const int y = top + m + i / 4 * 4 * LANES_M + i % 4;
        for (int q = 0; q < COLUMNS / 4; q++) {
            const int x = left + n + q * 4 * LANES_N;
            for (int e = 0; e < 4; e++) {
                acc[i][q].of[e] *= alpha;
            }
            if (C_FOURS) {
                if (y < M && x < N) {
                    store4(&c[size_t(y) * N + x], acc[i][q]);
                }
            } else {
                for (int e = 0; e < 4; e++) {
                    if (y < M && x + e < N) {
                        c[size_t(y) * N + x + e] = acc[i][q].of[e];
                    }
                }
            }
        }
    }
}
