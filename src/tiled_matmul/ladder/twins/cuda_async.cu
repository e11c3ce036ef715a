// The twin of cuda_async: asynchronous copies in three stages. As there, -maxrregcount=168.
using T = float;
constexpr int TILE_M = 64, TILE_N = 128, TILE_K = 16;
constexpr int WARP_M = 32, WARP_N = 64;
constexpr int STAGES = 3;
constexpr int AHEAD = STAGES - 2;  // groups of copies that may be in flight when a tile is begun
constexpr int THREADS = 128;
constexpr int A_STEP = THREADS / TILE_K, B_STEP = THREADS * 4 / TILE_N;  // rows copied at once
constexpr int A_COPIES = TILE_M / A_STEP, B_COPIES = TILE_K / B_STEP;
constexpr int A_ROW = TILE_M + 4;

struct alignas(16) Four {
    T of[4];
};

__device__ Four load4(const T* at) { return *reinterpret_cast<const Four*>(at); }

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

extern "C" __global__ void cuda_async_kernel(const T* a, const T* b, T* c, int M, int N, int K) {
    __shared__ __align__(16) T a_tile[STAGES][TILE_K][A_ROW];
    __shared__ __align__(16) T b_tile[STAGES][TILE_K][TILE_N];
    T acc[8][8];
    Four a_part[2], b_part[2];
    const int B_ROW = (N + 3) / 4 * 4;  // the launcher pads rows of B to fours
    const int top = blockIdx.y * TILE_M, left = blockIdx.x * TILE_N;
    const int t = threadIdx.x;
    const int warp = t / 32, lane = t % 32;
    const int warp_row = warp / (TILE_N / WARP_N) * WARP_M;
    const int warp_col = warp % (TILE_N / WARP_N) * WARP_N;
    const int row = warp_row + lane / 8 * 4;  // of the thread's first quad
    const int col = warp_col + lane % 8 * 4;
    // What it copies: elements of A, A_STEP rows apart, and fours of B, B_STEP rows apart.
    const int a_row = t / TILE_K, a_col = t % TILE_K;
    const int b_row = t / 32, b_col = t % 32 * 4;
    const int rows = max(M - (top + a_row), 0);  // of A from the thread's first on
    const int columns = max(B_ROW - (left + b_col), 0);  // of B
    size_t a_from = size_t(top + a_row) * K + a_col;
    size_t b_from = size_t(b_row) * B_ROW + left + b_col;
    for (int i = 0; i < 8; i++) {
        for (int j = 0; j < 8; j++) {
            acc[i][j] = 0;
        }
    }
    int use = 0, fill = 0;
    int at = 0, size = (K - 1) % TILE_K + 1;  // of the next tile of K
    for (int tile = 0; tile < STAGES - 1; tile++) {  // the very first tile may not be full
        const int end = min(at + size, K);
        for (int s = 0; s < A_COPIES; s++) {
            const int target = a_row + A_STEP * s;
            const size_t source = a_from + size_t(A_STEP * s) * K;
            const bool there = at + a_col < end && A_STEP * s < rows;
            copy_async(&a_tile[fill][a_col][target], &a[source], there);
        }
        for (int s = 0; s < B_COPIES; s++) {
            const int target = b_row + B_STEP * s;
            const size_t source = b_from + size_t(B_STEP * s) * B_ROW;
            const bool there = at + target < end && columns > 0;
            copy_async4(&b_tile[fill][target][b_col], &b[source], there);
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
        at += size;
        a_from += size;
        b_from += size_t(size) * B_ROW;
        size = TILE_K;
        fill++;
    }
    while (at < K + (STAGES - 1) * TILE_K) {
        asm volatile("cp.async.wait_group %0;" :: "n"(AHEAD) : "memory");
        __syncthreads();
        const int here = at < K ? rows : 0;
        for (int s = 0; s < A_COPIES; s++) {
            const int target = a_row + A_STEP * s;
            const size_t source = a_from + size_t(A_STEP * s) * K;
            copy_async(&a_tile[fill][a_col][target], &a[source], A_STEP * s < here);
        }
        const bool there = at < K && columns > 0;
        for (int s = 0; s < B_COPIES; s++) {
            const int target = b_row + B_STEP * s;
            const size_t source = b_from + size_t(B_STEP * s) * B_ROW;
            copy_async4(&b_tile[fill][target][b_col], &b[source], there);
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
        at += TILE_K;
        a_from += TILE_K;
        b_from += size_t(TILE_K) * B_ROW;
#pragma unroll
        for (int k = 0; k < TILE_K; k++) {
            for (int h = 0; h < 2; h++) {
                a_part[h] = load4(&a_tile[use][k][row + h * (WARP_M / 2)]);
                b_part[h] = load4(&b_tile[use][k][col + h * (WARP_N / 2)]);
            }
            for (int j = 0; j < 8; j++) {  // down one column, up the next
                for (int step = 0; step < 8; step++) {
                    const int i = j % 2 ? 7 - step : step;
                    acc[i][j] += a_part[i / 4].of[i % 4] * b_part[j / 4].of[j % 4];
                }
            }
        }
        use = use < STAGES - 1 ? use + 1 : 0;
        fill = fill < STAGES - 1 ? fill + 1 : 0;
    }
    for (int i = 0; i < 8; i++) {
        const int y = top + row + i % 4 + i / 4 * (WARP_M / 2);
        for (int j = 0; j < 8; j++) {
            const int x = left + col + j % 4 + j / 4 * (WARP_N / 2);
            if (y < M && x < N) {
                c[size_t(y) * N + x] = acc[i][j];
            }
        }
    }
}
