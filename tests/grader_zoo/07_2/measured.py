# status: FORBIDDEN
# words: An answer imports nothing
# exercise 07.2: traffic, predicted
from tiled_matmul.microscope.cuda import watch


def global_loads(m, n, k, rows, columns):
    with watch() as traces:
        return len(traces)
