// The twin of cuda_tile_view: "take this tile, copy it, wait, multiply", without an index into a or b.
using T = float;
constexpr int TILE = 32;

// One tile of a row-major matrix: its first element, its shape, clipped to the matrix, and how far
// apart the matrix's rows are.
template <typename Element>
struct TileView {
    Element* corner;
    int rows, cols, pitch;

    __device__ Element& at(int i, int j) const { return corner[i * pitch + j]; }
};

template <typename Element>
__device__ TileView<Element> tile(Element* matrix, int rows, int cols, int i, int j) {
    Element* corner = matrix + i * TILE * cols + j * TILE;
    return {corner, min(TILE, rows - i * TILE), min(TILE, cols - j * TILE), cols};
}

// Copies an element to shared memory, or stores a zero if it is not `present`.
__device__ void copy_async(T* target, const T* source, bool present) {
    const unsigned to = __cvta_generic_to_shared(target);
    const unsigned bytes = present ? sizeof(T) : 0;
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;"
                 :: "r"(to), "l"(source), "n"(sizeof(T)), "r"(bytes) : "memory");
}

// Each of the block's threads copies one element.
__device__ void copy_tile_async(T (&target)[TILE][TILE], TileView<const T> view) {
    const int x = threadIdx.x, y = threadIdx.y;
    copy_async(&target[y][x], &view.at(y, x), y < view.rows && x < view.cols);
}

extern "C" __global__ void cuda_tile_view_kernel(
    const T* a, const T* b, T* c, int M, int N, int K) {
    __shared__ T a_tile[TILE][TILE];
    __shared__ T b_tile[TILE][TILE];
    const TileView<T> c_tile = tile(c, M, N, blockIdx.y, blockIdx.x);
    const int x = threadIdx.x, y = threadIdx.y;
    T acc = 0;
    for (int step = 0; step < (K + TILE - 1) / TILE; step++) {
        copy_tile_async(a_tile, tile(a, M, K, blockIdx.y, step));
        copy_tile_async(b_tile, tile(b, K, N, step, blockIdx.x));
        asm volatile("cp.async.commit_group;" ::: "memory");
        asm volatile("cp.async.wait_group 0;" ::: "memory");
        __syncthreads();
        for (int k = 0; k < TILE; k++) {
            acc += a_tile[y][k] * b_tile[k][x];
        }
        __syncthreads();
    }
    if (y < c_tile.rows && x < c_tile.cols) {
        c_tile.at(y, x) = acc;
    }
}
