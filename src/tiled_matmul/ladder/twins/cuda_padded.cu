// The twin of cuda_padded: shared tiles with padded rows; threadIdx.x counts rows.
using T = float;
constexpr int TILE = 32;
constexpr int PITCH = TILE + 1;
constexpr bool COALESCED = true;

extern "C" __global__ void cuda_padded_kernel(const T* a, const T* b, T* c, int M, int N, int K) {
    __shared__ T a_tile[TILE][PITCH];
    __shared__ T b_tile[TILE][PITCH];
    const int x = threadIdx.x, y = threadIdx.y;
    const int u = COALESCED ? y : x, v = COALESCED ? x : y;
    const int top = blockIdx.x * TILE, left = blockIdx.y * TILE;
    T acc = 0;
    for (int start = 0; start < K; start += TILE) {
        const bool a_inside = top + u < M && start + v < K;
        const bool b_inside = start + u < K && left + v < N;
        a_tile[u][v] = a_inside ? a[(top + u) * K + start + v] : T(0);
        b_tile[u][v] = b_inside ? b[(start + u) * N + left + v] : T(0);
        __syncthreads();
        for (int k = 0; k < TILE; k++) {
            acc += a_tile[x][k] * b_tile[k][y];
        }
        __syncthreads();
    }
    if (top + x < M && left + y < N) {
        c[(top + x) * N + left + y] = acc;
    }
}
