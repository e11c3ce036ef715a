import warnings

import torch
import triton
import triton.language as tl

from tiled_matmul.grader import check
from tiled_matmul.microscope.triton import trace_tiles
from tiled_matmul.problem import Problem

warnings.filterwarnings("ignore", "tl.make_block_ptr")  # chapter 10 says why it warns
warnings.filterwarnings("ignore", "invalid value")  # NumPy's, where a program meets NaN
warnings.filterwarnings("ignore", "overflow")  # NumPy's, for the exponential in a sigmoid
