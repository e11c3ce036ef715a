from tiled_matmul.grader import check
