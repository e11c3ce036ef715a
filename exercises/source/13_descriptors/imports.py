import torch
import triton
import triton.language as tl

from tiled_matmul.grader import check
from tiled_matmul.microscope.triton import trace_tiles
from tiled_matmul.problem import Problem
