"""The rung that fits the shape: a rule picks one of the kernels below, and its tiles.

There is no kernel in here. `tiled_matmul.dispatch` decides: its `rule` compares what a model of
clocks and measured costs promise for the candidates, and takes the fastest. Inside `tuning`, a
clock decides between the best of them. Operands are checked here, and the rung that is chosen takes
them as they are, or turned: then it makes the transpose of C from the transposes of B and A.
"""

# Chapter 14 shows the rule by these names.
from tiled_matmul.dispatch.costs import (  # noqa: F401
    PARTS_A_CLOCK,
    SEAM,
    SECOND,
    START,
    Product,
    clocks,
)
from tiled_matmul.dispatch.rings import Ring  # noqa: F401
from tiled_matmul.dispatch.rule import SHORT, Choice, chosen, decide, pick  # noqa: F401
from tiled_matmul.kit.arguments import checked, tensor_operands
from tiled_matmul.kit.plans import remembered
from tiled_matmul.ladder import rung

DTYPES = ("float16", "bfloat16", "float32")


def choice_for(a, b, out=None) -> Choice:
    """Return what `matmul` runs for these operands. Raises as it does, before it runs anything."""
    *_, out = tensor_operands(a, b, out, DTYPES, strided=True)
    return decide(a, b, out, run)


def run(choice: Choice, a, b, out) -> None:
    """Multiply a (M, K) · b (K, N), which were checked, into out (M, N), by the rung of a Choice.

    Raises as the rung's launcher does.
    """
    if choice.turned:
        a, b, out = b.T, a.T, out.T
    with checked():
        rung(choice.module).matmul(a, b, out=out, **choice.options)


@remembered
def matmul(a, b, out=None):
    """Return a (M, K) · b (K, N) as (M, N). torch tensors of any strides; DTYPES, out of one dtype.

    Products are summed in float32. Raises TypeError or ValueError as `tensor_operands` and the
    launcher that is picked do.
    """
    *_, out = tensor_operands(a, b, out, DTYPES, strided=True)
    run(decide(a, b, out, run), a, b, out)
    return out
