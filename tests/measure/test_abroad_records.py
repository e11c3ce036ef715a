"""measure/abroad.py: which products are timed, what records say, and what is known of a product."""

from __future__ import annotations

import pytest

from tiled_matmul.kit import withheld
from tiled_matmul.kit.backend import select
from tiled_matmul.ladder import ABROAD, rung
from tiled_matmul.measure import abroad, fingerprint
from tiled_matmul.measure.records import Entry

RUN = {"gpu": "a GPU", "driver": "", "versions": {}, "date": "2026-01-01", "commit": "-"}


def entry(n, file, ms, **rung):
    case = {"n": n, "dtype": "float16", "file": file} | rung
    values = {"ms": ms, "spread": 0.01, "ratio": 2 / ms, "error": 2e-4}
    return Entry(f"{n} float16", case, values, {}, RUN)


def test_records_give_the_fastest_product_of_each_rung():
    taken = abroad.parse(
        [
            entry(4096, "", 2.0),
            entry(4096, "x-1", 4.0, rung="x_tile"),
            entry(4096, "x-2", 1.0, rung="x_tile"),
            entry(8192, "x-1", 0.5, rung="x_tile"),
        ]
    )
    found = abroad.best(taken, 4096, "float16")
    assert [(name, each.file) for name, each in found.items()] == [("x_tile", "x-2"), ("torch", "")]
    assert found["x_tile"].ratio == 2
    assert found["torch"].tflops == pytest.approx(2 * 4096**3 / 2e-3 / 1e12)
    assert not abroad.best(taken, 4096, "float32")


def test_every_product_is_timed_at_some_size_but_the_small_ones():
    timed = {
        file
        for dtype, sizes in abroad.SIZES.items()
        for n in sizes
        for _, file, _ in abroad.products(n, dtype)
    }
    left = {file for each in ABROAD for file in each.home.PRODUCTS} - timed
    sizes = {abroad.constants(file.rpartition("/")[2].rpartition(".")[0])["SIZE"] for file in left}
    assert timed and max(sizes) < min(size for each in abroad.SIZES.values() for size in each)


def test_constants_become_the_arguments_of_a_launcher():
    def matmul(a, b, out=None, *, tile=None, warps=None):
        pass

    given = {"BM": 128, "BN": 64, "BK": 32, "WARPS": 8, "DTYPE": "float16"}
    assert abroad.options(matmul, given) == {"tile": (128, 64, 32), "warps": 8}
    assert abroad.options(matmul, {"TM": 1, "TN": 2, "TK": 3}) == {"tile": (1, 2, 3)}
    assert abroad.options(matmul, {"SIZE": 9}) == {}


PRODUCTS = [(each.name, file) for each in ABROAD for file in each.home.PRODUCTS]


@pytest.mark.parametrize(("name", "file"), PRODUCTS)
def test_options_have_a_launcher_take_the_product(name, file):
    torch = pytest.importorskip("torch")
    home, stem = rung(name).home, file.rpartition("/")[2].rpartition(".")[0]
    known = home.PRODUCTS[file]
    dtype = getattr(torch, known.get("DTYPE", rung(name).dtype))
    device = "cuda" if select().on_gpu else "cpu"
    a = torch.empty((known.get("SIZE", 64),) * 2, dtype=dtype, device=device)
    (launch,) = withheld.of(home.matmul, a, a, **abroad.options(home.matmul, known))
    assert launch.kernel.name == stem


def test_all_that_a_job_runs_has_a_fingerprint():
    assert all(fingerprint.of(name) for job in abroad.jobs() for name in job.kernels)


@pytest.mark.parametrize("file", [p.stem for p in sorted(abroad.PRODUCTS.glob("*.json"))])
def test_a_product_in_machine_code_says_how_it_multiplies_and_copies(file):
    made = abroad.made(file)
    assert 16 < made.registers <= 255 and made.stack >= 0
    tensor_cores = made.multiplies.startswith(("HGMMA", "HMMA"))
    narrow = "float32" not in file
    assert tensor_cores or not narrow
    assert made.count(made.multiplies) > 0
    assert made.copies in ("TMA", "cp.async", "loads and stores")


def test_what_is_not_there_is_an_error():
    with pytest.raises(ValueError, match="no product 'none' with a JSON"):
        abroad.made("none")
    with pytest.raises(ValueError, match="no rung has a product 'none'"):
        abroad.constants("none")
    with pytest.raises(ValueError, match="nothing here multiplies"):
        _ = abroad.Made("", 32, 0, {"LDG": 3}).multiplies
