// The twin of cuda_tile_hand: asynchronous copies, and every index written out.
using T = float;
constexpr int TILE = 32;

// Copies an element to shared memory, or stores a zero if it is not `present`.
__device__ void copy_async(T* target, const T* source, bool present) {
    const unsigned to = __cvta_generic_to_shared(target);
    const unsigned bytes = present ? sizeof(T) : 0;
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;"
                 :: "r"(to), "l"(source), "n"(sizeof(T)), "r"(bytes) : "memory");
}

extern "C" __global__ void cuda_tile_hand_kernel(
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
        copy_async(&a_tile[y][x], &a[row * K + start + x], in_a);
        copy_async(&b_tile[y][x], &b[(start + y) * N + col], in_b);
        asm volatile("cp.async.commit_group;" ::: "memory");
        asm volatile("cp.async.wait_group 0;" ::: "memory");
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
