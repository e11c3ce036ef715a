"""kit/measured.py: where small tiles and pointers are taken, and that they are right there."""

from __future__ import annotations

import math

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from tiled_matmul import ROOT  # noqa: E402
from tiled_matmul.check import assert_matmul, poison  # noqa: E402
from tiled_matmul.kit import measured  # noqa: E402
from tiled_matmul.kit.measured import POINTERS, THIN, TILES, Product  # noqa: E402
from tiled_matmul.ladder import rung, triton_best  # noqa: E402
from tiled_matmul.measure import drawn, results  # noqa: E402

SURVEY = ROOT / "results" / "survey" / "h200.json"


def test_a_long_product_takes_longer_and_splits_share_it():
    for tile in (*TILES, THIN):
        small, large = Product(512, 512, 1024, 132), Product(512, 512, 8192, 132)
        assert 0 < tile.microseconds(small) < tile.microseconds(large)
    split = TILES[-1]
    thin = Product(64, 64, 16384, 132)
    assert split.microseconds(thin, 8) < split.microseconds(thin, 2) / 2


def test_uneven_rows_cost_a_copy_or_slower_blocks():
    even, uneven = Product(256, 256, 4096, 132), Product(256, 256, 4096, 132, "ab")
    for tile in TILES:
        assert tile.microseconds(uneven) > tile.microseconds(even)
    assert even.copies == 0
    assert uneven.copies == pytest.approx(2 * (3 + 4 * 256 * 4096 / 1.5e6))
    assert Product(16, 512, 64, 132, "ac").turned() == Product(512, 16, 64, 132, "bc")


def test_rows_that_no_descriptor_fits_are_read_by_pointers_where_a_copy_costs_more():
    assert triton_best.chosen(Product(100, 100, 1001, 132, "a")).module == POINTERS
    even = triton_best.chosen(Product(100, 100, 1001, 132))
    assert even.module != POINTERS
    large = triton_best.chosen(Product(4095, 4097, 4099, 132, "abc"))
    assert large == triton_best.pick(4095, 4097, 4099, 132)


def test_the_listed_shapes_get_what_the_model_picks():
    own = [r for r in results.reference() if r.rung == "triton_best" and r.dtype != "float32"]
    shapes = {(r.m, r.n, r.k) for r in own}
    assert len(shapes) > 10
    for m, n, k in shapes:
        rows = {"a": k, "b": n, "c": n}
        uneven = "".join(name for name, length in rows.items() if length % 8)
        assert triton_best.chosen(Product(m, n, k, 132, uneven)) == triton_best.pick(m, n, k, 132)


def test_other_gpus_and_float32_get_what_the_model_picks():
    product = Product(100, 100, 1001, 132, "a")
    for capability, bytes_each in (((8, 0), 2), ((12, 0), 2), ((9, 0), 4)):
        wanted = triton_best.pick(100, 100, 1001, 132, capability, bytes_each)
        assert triton_best.chosen(product, capability, bytes_each) == wanted


def test_the_costs_fit_the_survey():
    import sys

    sys.path.insert(0, str(ROOT / "tools"))
    try:
        import survey
    finally:
        sys.path.remove(str(ROOT / "tools"))
    _, _, taken = drawn.load(SURVEY)
    assert len(taken) == 480
    for tile in (*TILES, THIN):
        rows = survey.measured(tile, taken, 132)
        assert len(rows) > survey.LEAST
        assert math.exp(survey.error(tile, rows)) < 1.26, tile


@pytest.mark.gpu
@pytest.mark.parametrize("tile", (*TILES, THIN), ids=str)
@pytest.mark.parametrize("layout", ("nn", "nt", "tn", "tt"))
def test_each_tile_multiplies_any_rows(tile, layout):
    for m, n, k in ((64, 96, 1024), (33, 47, 519), (130, 70, 1100), (17, 300, 600)):
        a = torch.randn(m, k, device="cuda").half()
        b = torch.randn(k, n, device="cuda").half()
        a = a.T.contiguous().T if layout[0] == "t" else a
        b = b.T.contiguous().T if layout[1] == "t" else b
        for choice, _ in tile.choices(Product(m, n, k, 132)):
            out = poison(torch.empty(m, n, dtype=a.dtype, device="cuda"))
            rung(choice.module).matmul(a, b, out=out, **choice.options)
            assert_matmul(out, a, b)


@pytest.mark.gpu
def test_the_rule_launches_what_it_chooses(monkeypatch):
    a, b = torch.randn(90, 333, device="cuda").half(), torch.randn(333, 77, device="cuda").half()
    choice = triton_best.choice_for(a, b)
    assert choice.module == POINTERS
    assert_matmul(triton_best.matmul(a, b), a, b)
    monkeypatch.setattr(measured, "TILES", ())
    triton_best.chosen.cache_clear()
    assert triton_best.choice_for(a, b).module != POINTERS
    triton_best.chosen.cache_clear()
