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
    for i, j in hl.tile([m, n]):
        acc = hl.zeros([i, j], dtype=torch.float32)
        for at in hl.tile(k):
            acc = torch.addmm(acc, a[i, at], b[at, j])
        c[i, j] = acc
    return c
