from tiled_matmul.book import page as notebook
from tiled_matmul.grader import check
