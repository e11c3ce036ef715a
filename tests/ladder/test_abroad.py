"""Rungs in other languages: their products are right, of today's source, and refused otherwise."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from tiled_matmul.kit import products  # noqa: E402
from tiled_matmul.kit.backend import select  # noqa: E402
from tiled_matmul.kit.products import ProductError, read  # noqa: E402
from tiled_matmul.ladder import ABROAD, rung  # noqa: E402
from tiled_matmul.languages.mojo import MOJO, kernel_in  # noqa: E402

FOLDER = Path(products.__file__).parents[1] / "ladder"
MADE = [(each.name, file) for each in ABROAD for file in each.home.PRODUCTS]
SMALL = 41  # of matrices that the interpreter multiplies in seconds


def operands(size, device="cpu"):
    """Return the puzzle's matrices at 9, and small whole numbers beyond."""
    device = "cuda" if select().on_gpu else device
    a = torch.arange(size * size, dtype=torch.float32, device=device).reshape(size, size)
    return (a, 2 * a) if size == 9 else (a % 7 - 3, a % 5 - 2)


def options_of(constants):
    names = {"TILE": "tile", "ROWS": "rows"}
    return {names[name]: value for name, value in constants.items() if name in names}


@pytest.mark.parametrize(("name", "file"), MADE)
def test_a_product_multiplies(name, file):
    constants = rung(name).home.PRODUCTS[file]
    size = constants["SIZE"]
    if size > SMALL and not select().on_gpu:
        assert read(FOLDER / file, rung(name).home.SOURCE, MOJO.compiler()).kernel.count("fma")
        return
    a, b = operands(size)
    c = rung(name).matmul(a, b, **options_of(constants))
    assert torch.equal(c, (a.double() @ b.double()).float())
    if size == 9:
        assert c[0, :3].tolist() == [3672, 3744, 3816] and c[8, 8] == 61272


def ran(name, **options):
    a = torch.zeros((9, 9))
    return products.seen(rung(name).matmul, a, a, **options)


@pytest.mark.skipif(select().on_gpu, reason="counts are the interpreter's")
@pytest.mark.parametrize("rows", [1, 3])
def test_only_as_many_rows_of_threads_copy_as_the_layout_has(rows):
    seen = ran("mojo_idiomatic", tile=3, rows=rows)
    copying = {each.thread for each in seen.copies}
    assert copying == {(x, y, 0) for y in range(rows) for x in range(3)}
    assert len(seen.copies) == 9 * 3 * 2 * 9  # blocks, steps, matrices, elements
    assert not seen.of("st.shared")


@pytest.mark.skipif(select().on_gpu, reason="counts are the interpreter's")
def test_in_the_manual_kernel_every_thread_copies_one_element_of_each_tile():
    seen = ran("mojo_manual", tile=3)
    assert not seen.copies and set(seen.of("st.shared").values()) == {9 * 3 * 2}
    assert len(seen.of("st.shared")) == 9


def test_sizes_that_nothing_is_compiled_for_are_an_error():
    a = torch.zeros((10, 10))
    with pytest.raises(ValueError, match=r"nothing is compiled for 10×10×10 with tile=3; there is"):
        rung("mojo_manual").matmul(a, a, tile=3)
    with pytest.raises(ValueError, match=r"nothing is compiled for 9×5×9 with tile=3, rows=2"):
        rung("mojo_idiomatic").matmul(a[:9, :9].clone(), a[:9, :5].clone(), tile=3, rows=2)


def planted(tmp_path, change):
    name, file = MADE[0]
    path = tmp_path / Path(file).name
    path.write_text(change((FOLDER / file).read_text()))
    return lambda: read(path, rung(name).home.SOURCE, MOJO.compiler())


FAULTS = {
    r"mojo_manual-9-3.ptx was made from another mojo_manual.mojo: it says 0000": (
        lambda text: text.replace("// hash: ", "// hash: 0000")
    ),
    r"was made from another compiler: it says mojo 0.9, and here is mojo": (
        lambda text: text.replace(MOJO.compiler(), "mojo 0.9")
    ),
    r"mojo_manual-9-3.ptx does not say its constants": (
        lambda text: text.replace("// constants: ", "// ")
    ),
}


@pytest.mark.parametrize("message", FAULTS)
def test_a_product_of_another_source_or_compiler_is_refused_by_name(message, tmp_path):
    assert planted(tmp_path, lambda text: text)().name == "mojo_manual-9-3"
    with pytest.raises(ProductError, match=message):
        planted(tmp_path, FAULTS[message])()


def test_a_product_that_is_missing_is_named(tmp_path):
    with pytest.raises(ProductError, match=r"there is no product none.ptx; `make languages`"):
        read(tmp_path / "none.ptx", rung("mojo_manual").home.SOURCE, MOJO.compiler())


def test_every_product_is_of_a_rung_and_says_its_constants():
    there = {str(path.relative_to(FOLDER)) for path in FOLDER.glob("abroad/products/*")}
    assert there == {file for _, file in MADE}
    for name, file in MADE:
        product = read(FOLDER / file, rung(name).home.SOURCE, MOJO.compiler())
        constants = rung(name).home.PRODUCTS[file]
        assert product.head["constants"] == " ".join(f"{x}={y}" for x, y in constants.items())
        assert product.capability == (8, 0) and product.kernel.name == name


def test_a_kernel_is_shown_as_it_is_written():
    assert rung("mojo_manual").kernel.startswith("def mojo_manual(c: Matrix, a: Matrix, b: Matrix)")
    assert rung("mojo_manual").kernel.rstrip().endswith("c[row, column] = acc")
    with pytest.raises(ValueError, match=r"there is no `def other\(`"):
        kernel_in("def main():\n    pass\n", "other")
