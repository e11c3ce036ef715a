@triton.jit
def snake(
    a,
    b,
    c,
    M,
    N,
    K,
    a_row,
    a_col,
    b_row,
    b_col,
    c_row,
    c_col,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
):
    program = tl.program_id(0)
    rows_of_tiles, columns_of_tiles = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    group = program // (GROUP_M * columns_of_tiles)
    place = program - group * GROUP_M * columns_of_tiles
    height = min(rows_of_tiles - group * GROUP_M, GROUP_M)
    column = place // height  # counted in the order of the walk
    down = place % height
    tile_m = group * GROUP_M + (down if column % 2 == 0 else height - 1 - down)
    tile_n = column if group % 2 == 0 else columns_of_tiles - 1 - column
    rows = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    cols = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for first in range(0, K, BLOCK_K):
        deep = first + tl.arange(0, BLOCK_K)
        x_at = a + rows * a_row + deep[None, :] * a_col
        y_at = b + deep[:, None] * b_row + cols * b_col
        x = tl.load(x_at, mask=(rows < M) & (deep[None, :] < K), other=0.0)
        y = tl.load(y_at, mask=(deep[:, None] < K) & (cols < N), other=0.0)
        total = tl.dot(x, y, total)
    inside = (rows < M) & (cols < N)
    tl.store(c + rows * c_row + cols * c_col, total.to(c.dtype.element_ty), mask=inside)
