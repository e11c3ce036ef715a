from numba import cuda

from tiled_matmul.grader import check
from tiled_matmul.kit.intrinsics import commit_copies, copy_async, wait_copies
