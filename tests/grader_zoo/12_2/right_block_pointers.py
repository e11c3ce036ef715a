# status: PASS
# words: 
# exercise 12.2: K in parts
@triton.jit
def part_of_k(
    a,
    b,
    parts,
    M,
    N,
    K,
    a_row,
    a_col,
    b_row,
    b_col,
    part,  # how far a matrix of parts is from the next one
    row,
    col,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    SPLITS: tl.constexpr,
):
    split = tl.program_id(2)
    top, left = tl.program_id(1) * BLOCK_M, tl.program_id(0) * BLOCK_N
    a_tile = tl.make_block_ptr(
        a, (M, K), (a_row, a_col), (top, split * BLOCK_K), (BLOCK_M, BLOCK_K), (1, 0)
    )
    b_tile = tl.make_block_ptr(
        b, (K, N), (b_row, b_col), (split * BLOCK_K, left), (BLOCK_K, BLOCK_N), (1, 0)
    )
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for _ in range(split * BLOCK_K, K, SPLITS * BLOCK_K):
        a_values = tl.load(a_tile, boundary_check=(0, 1), padding_option="zero")
        b_values = tl.load(b_tile, boundary_check=(0, 1), padding_option="zero")
        acc += tl.dot(a_values, b_values, input_precision="ieee")
        a_tile = tl.advance(a_tile, (0, SPLITS * BLOCK_K))
        b_tile = tl.advance(b_tile, (SPLITS * BLOCK_K, 0))
    c_tile = tl.make_block_ptr(
        parts + split * part, (M, N), (row, col), (top, left), (BLOCK_M, BLOCK_N), (1, 0)
    )
    tl.store(c_tile, acc, boundary_check=(0, 1))
