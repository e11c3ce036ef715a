"""C (M, N) = A (M, K) · B (K, N) in Helion: PyTorch on tiles, sums in float32."""

import helion
import helion.language as hl
import torch


@helion.kernel(
    static_shapes=False,
    config=helion.Config(
        block_sizes=[128, 256, 64],
        num_warps=8,
        num_stages=4,
        l2_groupings=[8],
        indexing="tensor_descriptor",
        host_tensor_descriptors=True,
    ),
)
def helion_tile(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    m, k = a.size()
    k, n = b.size()
    c = torch.empty([m, n], dtype=a.dtype, device=a.device)
    for tile_m, tile_n in hl.tile([m, n]):
        acc = hl.zeros([tile_m, tile_n], dtype=torch.float32)
        for tile_k in hl.tile(k):
            acc = torch.addmm(acc, a[tile_m, tile_k], b[tile_k, tile_n])
        c[tile_m, tile_n] = acc
    return c
