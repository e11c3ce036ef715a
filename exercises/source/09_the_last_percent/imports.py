from numba import cuda

from tiled_matmul.grader import check
