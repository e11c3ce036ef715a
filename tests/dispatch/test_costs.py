"""dispatch/costs.py: where small tiles and pointers are taken, and that they are right there."""

from __future__ import annotations

import itertools
import math

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from tiled_matmul.check import assert_matmul, poison  # noqa: E402
from tiled_matmul.dispatch import rings as dispatch_rings  # noqa: E402
from tiled_matmul.dispatch import rule  # noqa: E402
from tiled_matmul.dispatch import small as dispatch_small  # noqa: E402
from tiled_matmul.dispatch.costs import POINTERS, TILES, Product  # noqa: E402
from tiled_matmul.dispatch.rings import RINGS  # noqa: E402
from tiled_matmul.dispatch.small import small  # noqa: E402
from tiled_matmul.kit.layouts import GRAIN, across, begins, grain  # noqa: E402
from tiled_matmul.ladder import triton_best  # noqa: E402
from tiled_matmul.measure import drawn, results  # noqa: E402


def test_a_long_product_takes_longer_and_splits_share_it():
    for tile in TILES:
        small, large = Product(512, 512, 1024, 132), Product(512, 512, 8192, 132)
        assert 0 < tile.microseconds(small) < tile.microseconds(large)
    [split] = [tile for tile in TILES if tile.block == (64, 32, 128)]
    thin = Product(64, 64, 16384, 132)
    assert split.microseconds(thin, 8) < split.microseconds(thin, 2) / 2


def test_uneven_rows_cost_a_copy_or_slower_blocks():
    even, pairs, odd = (
        Product(256, 256, 4096, 132, (grain, grain, GRAIN)) for grain in (GRAIN, 2, 1)
    )
    for tile in TILES:
        times = [tile.microseconds(each) for each in (even, pairs, odd)]
        assert times[0] < times[1] <= times[2]
    assert even.copies == 0 and even.even and not odd.even
    assert odd.copies == pytest.approx(2 * (2.5 + 4 * 256 * 4096 / 1.76e6))
    assert Product(16, 512, 64, 132, (1, 8, 2)).turned() == Product(512, 16, 64, 132, (8, 1, 2))


def test_odd_rows_that_lie_across_k_are_told_apart():
    """Tiles of 32 by 32 take 15 times as long there; smaller steps hardly longer."""
    x = torch.empty(33, 35, dtype=torch.float16)
    assert [across(*pair) for pair in ((x, x.T), (x.T, x), (x.T, x.T), (x, x))] == [0, 2, 1, 1]
    assert across(x[:, :32].T, torch.empty(32, 40, dtype=torch.float16)) == 1
    for lie in (0, 1, 2):
        product = Product(47, 17, 11057, 132, (1, 1, 1), lie)
        small = rule.chosen(product).options["block"] == (32, 32, 128)
        assert small == (lie == 0)


def test_a_tile_is_turned_where_that_fits_better():
    """16 columns suit a C of few columns, and turned one of few rows."""
    [tile] = [t for t in TILES if (t.module, t.block[1]) == (POINTERS, 16)]
    for m, n, turned in ((4096, 16, False), (16, 4096, True)):
        choice, _ = min(tile.choices(Product(m, n, 256, 132)), key=lambda pair: pair[1])
        assert choice.turned == turned


def test_rows_that_no_descriptor_fits_are_read_by_pointers_where_a_copy_costs_more():
    odd = (1, 1, 1)
    assert rule.chosen(Product(100, 100, 1001, 132, odd)).module == POINTERS
    large = rule.chosen(Product(4095, 4097, 4099, 132, odd))
    assert large.module == "gluon_shapes"
    long = rule.chosen(Product(227, 759, 15807, 132, odd))
    assert long.options["splits"] > 1


def test_the_grain_that_the_rule_sees():
    x = torch.empty(64, 104, dtype=torch.float16)
    assert [grain(y) for y in (x, x.T, x[:, :100], x[:, 1:])] == [8, 8, 8, 1]
    odd = torch.empty(64, 101, dtype=torch.float16)
    assert [grain(y) for y in (odd, odd.T, x[::2, ::2])] == [1, 1, 1]
    assert grain(torch.empty(64, 108, dtype=torch.float16)) == 4


def test_the_listed_shapes_get_a_ring_or_a_small_tile():
    own = [r for r in results.reference() if r.rung == "triton_best" and r.dtype != "float32"]
    shapes = {(r.m, r.n, r.k) for r in own}
    assert len(shapes) > 10
    for m, n, k in shapes:
        grains = tuple(math.gcd(GRAIN, length) for length in (k, n, n))
        product = Product(m, n, k, 132, grains)
        choice = rule.chosen(product)
        assert choice.module == "gluon_shapes" or m * n <= 512**2 or not product.even
        assert rule.chosen(product, (10, 0)) == rule.plain(product, (10, 0))
        assert rule.plain(product).module != "gluon_shapes"
    assert rule.chosen(Product(4096, 4096, 4096, 132)).options["block"] == (128, 256, 64)


def row_major(m, n, k):
    """Return the product of row-major matrices of float16, whose rows may begin between sectors."""
    rows = (next(each for each in (128, 32, 16) if 2 * length % each == 0) for length in (k, n))
    return Product(m, n, k, 132, begins=tuple(rows))


def test_blocks_share_copies_where_rows_begin_between_sectors(monkeypatch):
    """As a GPU said: without clusters 3000³ has 0.89 of the library's rate, with them 0.96."""
    for there, blocks in ((True, 2), (False, 1)):
        monkeypatch.setattr(dispatch_rings, "multicasts", lambda there=there: there)
        rule.chosen.cache_clear()
        for sizes in ((3000, 3000, 3000), (5000, 3000, 7000), (7000, 5000, 3000)):
            choice = rule.chosen(row_major(*sizes))
            assert (choice.module, choice.options["blocks"]) == ("gluon_shapes", blocks)
    rule.chosen.cache_clear()


def test_the_faster_of_rings_and_small_tiles_is_chosen():
    modules = set()
    for sizes in ((64, 64, 64), (512, 512, 512), (4096, 4096, 4096), (48, 4096, 24)):
        product = Product(*sizes, 132)
        best = min(dispatch_rings.rings(product)[0], small(product)[0], key=lambda pair: pair[1])
        assert rule.chosen(product) == best[0]
        modules.add(best[0].module)
    assert modules == {"gluon_shapes", POINTERS}


def test_small_tiles_of_even_rows_are_not_for_others():
    for grains, tiles in (
        ((8, 8, 8), dispatch_small.TILES),
        ((4, 8, 8), TILES),
        ((8, 8, 1), TILES),
    ):
        found = {choice.options["block"] for choice, _ in small(Product(96, 96, 999, 132, grains))}
        assert found == {tile.block for tile in tiles}


def of(block):
    [found] = [ring for ring in RINGS if ring.block == block]
    return found


def test_rows_cost_the_more_the_less_their_beginnings_are_even():
    wide = of((128, 256, 64))

    def took(begins, blocks=1):
        return wide.microseconds(Product(4096, 4096, 4096, 132, begins=begins), blocks)

    lines, sectors, a, b, both = map(took, ((128, 128), (32, 32), (16, 32), (32, 16), (16, 16)))
    assert lines < sectors < a < b < both < 1.5 * lines
    assert took((16, 16), 2) < 0.9 * both


def test_a_c_of_few_tiles_with_a_long_k_is_cut():
    product = Product(768, 768, 50000, 132)
    whole, cut = (of((128, 256, 64)).microseconds(product, 1, splits) for splits in (1, 7))
    assert cut < whole / 3
    options = rule.chosen(product).options
    assert options["splits"] > 1
    assert of((64, 16, 128)).splits(Product(64, 64, 128, 132)) == {1}


def test_fours_run_all_at_once():
    """On an H200 there is room for 30 clusters of 4 blocks: a 31st would wait until one ends."""
    fours = 0
    for sizes in ((4096, 4096, 4096), (1304, 1232, 3328), (560, 12656, 9960)):
        for choice, _ in dispatch_rings.rings(Product(*sizes, 132)):
            rows, columns, _ = choice.options["block"]
            width = sum(columns) if isinstance(columns, tuple) else columns
            m, n = sizes[:2] if not choice.options.get("down") else sizes[1::-1]
            tiles = -(-m // (4 * rows)) * -(-n // width) * choice.options.get("splits", 1)
            assert choice.options["blocks"] < 4 or tiles <= 30
            fours += choice.options["blocks"] == 4
    assert fours


def test_where_rows_of_a_matrix_begin():
    x = torch.empty(64, 3000, dtype=torch.float16)
    assert [begins(y) for y in (x, x.T, x[:, :2000], x.repeat(1, 2))] == [16, 16, 16, 32]
    made = [begins(torch.empty(3, n, dtype=torch.float16)) for n in (8, 16, 17, 25, 64, 128)]
    assert made == [16, 32, 16, 32, 128, 128]  # 17 and 25 are copied, to 24 and 32


def test_strides_of_any_kind_have_rows_that_begin_somewhere():
    """Where a size is 1 a stride may be any number, and a descriptor takes the other."""
    memory = torch.empty(20000, dtype=torch.float16)
    sizes, strides = (1, 2, 17, 64), (0, 1, 2, 3, 8, 16, 24, 63, 64, 128)
    for shape in itertools.product(sizes, sizes):
        for each in itertools.product(strides, strides):
            assert begins(memory.as_strided(shape, each)) in (128, 32, 16), (shape, each)
    one = memory.as_strided((1, 64), (1, 8))
    assert (begins(one), begins(one.T)) == (16, 16)
    assert rule.chosen(rule.kind_of(one, memory[:4096].view(64, 64), memory[:64].view(1, 64))[0])


def test_other_gpus_and_float32_get_what_the_model_picks():
    product = Product(100, 100, 1001, 132, (1, 8, 8))
    for capability, bytes_each in (((8, 0), 2), ((12, 0), 2), ((9, 0), 4)):
        wanted = rule.pick(100, 100, 1001, 132, capability, bytes_each)
        assert rule.chosen(product, capability, bytes_each) == wanted


def test_the_rule_decides_nearly_as_well_as_a_clock():
    """On products that no costs were fitted to."""
    _, _, taken = drawn.load(drawn.SHAPES / "h200.json")
    lost = [math.log(each.ms[drawn.RULED] / each.ms[drawn.TUNED]) for each in taken]
    assert len(lost) == drawn.COUNT and math.exp(sum(lost) / len(lost)) < 1.07


@pytest.mark.gpu
@pytest.mark.parametrize("tile", (*TILES, *dispatch_small.TILES), ids=str)
@pytest.mark.parametrize("layout", ("nn", "nt", "tn", "tt"))
def test_each_tile_multiplies_any_rows(tile, layout):
    for m, n, k in ((64, 96, 1024), (33, 47, 519), (130, 70, 1100), (17, 300, 600)):
        a = torch.randn(m, k, device="cuda").half()
        b = torch.randn(k, n, device="cuda").half()
        a = a.T.contiguous().T if layout[0] == "t" else a
        b = b.T.contiguous().T if layout[1] == "t" else b
        for choice, _ in tile.choices(Product(m, n, k, 132)):
            out = poison(torch.empty(m, n, dtype=a.dtype, device="cuda"))
            triton_best.run(choice, a, b, out)
            assert_matmul(out, a, b)


@pytest.mark.gpu
def test_the_rule_launches_what_it_chooses(monkeypatch):
    a, b = torch.randn(90, 333, device="cuda").half(), torch.randn(333, 77, device="cuda").half()
    choice = triton_best.choice_for(a, b)
    assert choice.module == POINTERS
    assert_matmul(triton_best.matmul(a, b), a, b)
    monkeypatch.setattr(rule, "small", lambda product: dispatch_rings.rings(product)[-1:])
    rule.chosen.cache_clear()
    assert triton_best.choice_for(a, b).module != POINTERS
    rule.chosen.cache_clear()
