"""The suite "fp8" without a clock: its inputs, its errors, and how it calls torch."""

import pytest
import torch

from tiled_matmul.kit.backend import select
from tiled_matmul.measure import fp8

pytestmark = pytest.mark.skipif(select().on_gpu, reason="there the suite itself runs")
TILES = {"block": (16, 16, 64)}


def test_outliers_spoil_what_shares_their_scale():
    found = {(e["inputs"], e["mode"]): e for e in fp8.errors(256, "cpu", 16, **TILES)}
    assert len(found) == 6 * len(fp8.MODES)
    assert all(e["sums"]["worst"] < 1e-5 for e in found.values())  # the interpreter's are exact
    for what in ("row", "element"):
        name = f"a{'n' * (what == 'element')} {what} {{}} times as large"
        huge, large = name.format("100,000"), name.format("1,000")
        spoilt, plain = (found[huge, mode]["all"]["median"] for mode in ("tensor", "row"))
        assert spoilt > 10 * plain
        # Floats have exponents: what is 1000 times as large is still within their range.
        assert found[large, "tensor"]["all"]["worst"] < 2 * found[large, "row"]["all"]["worst"]
        assert found[huge, "row"]["all"]["median"] < 0.06


def test_the_model_is_compared_with_sums():
    found = list(fp8.against_model(1024, "cpu", 8, block=(16, 16, 128)))
    assert [e["fast"] for e in found] == [True, False] * 2
    assert all(e["measured"] < 1e-6 for e in found)  # in the interpreter
    positive = {e["fast"]: e["predicted"] for e in found if e["inputs"] == "positive"}
    assert positive[True] > 20 * positive[False] > 0


@pytest.mark.parametrize("mode", ["tensor", "tensor, fast"])
def test_torch_makes_the_same_product(mode):
    x, w = torch.randn(32, 64), torch.randn(48, 64)
    a, b, options = fp8.scaled(mode, x, w)
    c = fp8.by_torch(mode, a, b, options)()
    fp8.check(c, a, b, options)
    with pytest.raises(ValueError, match=r"C \(32, 48\) is wrong"):
        fp8.check(c * 1.1, a, b, options)
