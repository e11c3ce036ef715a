// The twin of the second kernel of cuda_split_k, which adds up the parts in their order.
using T = float;

extern "C" __global__ void sum_parts_kernel(
    const T* parts, T* c, int M, int N, int K, int SPLITS, int PART_ROW) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x;
    const int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (y < M && x < N) {
        const size_t size = size_t(M) * PART_ROW, place = size_t(y) * PART_ROW + x;
        T total = parts[place];
        for (int split = 1; split < SPLITS; split++) {
            total += parts[split * size + place];
        }
        c[size_t(y) * N + x] = total;
    }
}
