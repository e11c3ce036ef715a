"""Rungs in other languages: their products are right, of today's source, and refused otherwise."""

from __future__ import annotations

import ast
import json
import struct
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from tiled_matmul.kit import cubins, products, withheld  # noqa: E402
from tiled_matmul.kit.backend import select  # noqa: E402
from tiled_matmul.kit.products import ProductError, read  # noqa: E402
from tiled_matmul.ladder import ABROAD, rung  # noqa: E402
from tiled_matmul.languages.abroad import CubinLanguage, function_in  # noqa: E402
from tiled_matmul.languages.helion import WRITTEN  # noqa: E402
from tiled_matmul.languages.mojo import MOJO, kernel_in  # noqa: E402

FOLDER = Path(products.__file__).parents[1] / "ladder"
HOPPER = [each for each in ABROAD if isinstance(each.language, CubinLanguage)]
MADE = [(each.name, file) for each in ABROAD for file in each.home.PRODUCTS if each not in HOPPER]
CUBINS = [(each.name, file) for each in HOPPER for file in each.home.PRODUCTS]
SIZES = {"M": 1000, "N": 1192, "K": 488}
ADDRESSES = {"A": 0x7F0000000000, "B": 0x7F1000000000, "C": 0x7F2000000000}
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
    a = operands(10)[0]
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
    beside = {file.replace(".cubin", ".json") for _, file in CUBINS}
    beside |= {
        file.replace(".cubin", WRITTEN) for name, file in CUBINS if name.startswith("helion")
    }
    assert there == {file for _, file in MADE + CUBINS} | beside
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


def cubin(file):
    (name,) = [name for name, each in CUBINS if each == f"abroad/products/{file}.cubin"]
    return of_today(name, f"abroad/products/{file}.cubin")


def of_today(name, file):
    return cubins.read(FOLDER / file, rung(name).home.SOURCE, rung(name).language.compiler())


@pytest.mark.parametrize(("name", "file"), CUBINS)
def test_machine_code_is_of_todays_source_and_says_how_it_is_launched(name, file):
    product, home = of_today(name, file), rung(name).home
    constants = home.PRODUCTS[file]
    assert product.code[:4] == b"\x7fELF" and product.layout["entry"].encode() in product.code
    assert product.head["constants"] == " ".join(f"{x}={y}" for x, y in constants.items())
    assert product.head["target"] == rung(name).language.target
    assert product.layout["registers"] <= 255 and product.layout["instructions"]
    assert 0 <= product.layout["shared"] <= 227 * 1024
    for size in (4096, 8192):
        sizes = dict.fromkeys("MNK", size)
        assert all(x >= 1 for x in cubins.grid_of(product, sizes))
        passed = cubins.packed(product, ADDRESSES, sizes)
        assert all(passed) and len(passed) == len(product.layout["arguments"])
    for matrix in ADDRESSES:
        kept = [*walked(product.layout["arguments"])]
        assert any(matrix in (x.get("address"), x.get("map")) for x in kept), matrix


def walked(entries):
    for each in entries:
        yield each
        yield from walked(each.get("struct", ()))


@pytest.mark.parametrize("each", HOPPER, ids=lambda x: x.name)
def test_a_kernel_for_hopper_is_shown_and_its_file_is_never_imported(each):
    text = each.home.SOURCE.read_text(encoding="utf-8")
    assert each.kernel and each.kernel in text
    assert max(map(len, each.kernel.splitlines())) <= 91
    ast.parse(text)
    assert each.language.source(each.kernel) == each.kernel and each.kernel_lines


def test_arrays_of_cutile_are_five_parameters_each():
    passed = cubins.packed(cubin("cutile_tile-128-256-64"), ADDRESSES, SIZES)
    assert b"".join(passed) == struct.pack(
        "<Q4iQ4iQ4i",
        *(ADDRESSES["A"], 1000, 488, 488, 1),
        *(ADDRESSES["B"], 488, 1192, 1192, 1),
        *(ADDRESSES["C"], 1000, 1192, 1192, 1),
    )
    assert [len(x) for x in passed] == [8, 4, 4, 4, 4] * 3
    assert cubins.grid_of(cubin("cutile_tile-128-256-64"), SIZES) == (8 * 5, 1, 1)


def test_cute_takes_a_map_and_a_shape_for_each_matrix():
    maps = []

    def encode(entry):
        maps.append((entry["map"], *entry["box"], entry["swizzle"], entry["l2"]))
        return entry["map"].encode() * 128

    product = cubin("cute_tile-128-6")
    passed = cubins.packed(product, ADDRESSES, SIZES, encode)
    shapes = (b"\0", b"A" * 128, (1000, 488), b"B" * 128, (1192, 488), b"C" * 128, (1000, 1192))
    assert passed == [struct.pack("<2i", *x) if isinstance(x, tuple) else x for x in shapes]
    assert maps == [("A", 64, 128, 128, 128), ("B", 64, 64, 128, 128), ("C", 64, 128, 128, 128)]
    assert cubins.grid_of(product, SIZES) == (8, 10, 1)  # 8 rows of tiles by 10 columns
    # Stages of tiles of A and B, and their barriers: the tile of C lies over B's.
    assert product.layout["shared"] == 6 * (128 + 128) * 64 * 2 + 2 * 6 * 8


# As struct packs what follows; A, B and C are addresses, and a lower-case letter is that one's map.
M, N, K = SIZES.values()
PASSED = {
    "tilelang_tile-128-256-64": ("128s128s128siii", "a", "b", "c", K, M, N),
    "helion_tile-128-256-64": (
        *("128siiqq128siiqqQiiiiqq", "a", M, K, K, 1, "b", K, N, N, 1),
        *("C", N, M, N, K, 0, 0),
    ),
    "pallas_tile-4096-128-128-64": ("QQQ", "A", "B", "C"),
    "warp_tile-128-128-64": (
        *("iiqq" + 3 * "QqiiiiiiiiiI", 8, 10, 8 * 10 * 256, 256),
        *("A", 0, M, K, 0, 0, 2 * K, 2, 0, 0, 2, 0),
        *("B", 0, K, N, 0, 0, 2 * N, 2, 0, 0, 2, 0),
        *("C", 0, M, N, 0, 0, 2 * N, 2, 0, 0, 2, 0),
    ),
}


@pytest.mark.parametrize("file", PASSED)
def test_each_language_gets_its_arguments(file):
    passed = cubins.packed(
        cubin(file), ADDRESSES, SIZES, lambda entry: entry["map"].lower().encode() * 128
    )
    kinds, *values = PASSED[file]
    values = [
        x if isinstance(x, int) else ADDRESSES[x] if x.isupper() else x.encode() * 128
        for x in values
    ]
    assert b"".join(passed) == struct.pack(f"<{kinds}", *values)


def made_up(arguments, grid=(1, 1, 1)):
    return cubins.Cubin(Path("x.cubin"), {}, {"arguments": arguments, "grid": list(grid)}, b"")


def test_structs_are_packed_as_in_c():
    fields = [{"int32": ["M"]}, {"address": "A"}, {"pad": 3}, {"int32": [[2, "K"]]}, {"bytes": 1}]
    inner = {"struct": [{"int32": [{"ceil": ["N", 64]}]}, {"pad": 1}]}
    (passed,) = cubins.packed(made_up([{"struct": [*fields, inner]}]), ADDRESSES, SIZES)
    wanted = struct.pack("<i4xQ3xxi1x3xi1x3x", 1000, ADDRESSES["A"], 976, 19)
    assert passed == wanted + bytes(-len(wanted) % 8)


def test_grids_are_rounded_up():
    grid = ([["M", 64], ["N", 64]], ["K", 100], 7)
    assert cubins.grid_of(made_up([], grid), SIZES) == (16 * 19, 5, 7)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"float": 1}, "no parameter of a kernel is {'float': 1}"),
        ({"int32": [None]}, "no number is None"),
        ({"int32": [2**31]}, r"\[2147483648\] do not fit in the kernel's integers"),
    ],
)
def test_what_no_parameter_can_be_is_quoted(entry, message):
    with pytest.raises(ValueError, match=message):
        cubins.packed(made_up([entry]), ADDRESSES, SIZES)


def planted_cubin(tmp_path, change):
    name, file = CUBINS[0]
    for ending in (".cubin", ".json"):
        path = (FOLDER / file).with_suffix(ending)
        (tmp_path / path.name).write_bytes(path.read_bytes())
    told = (tmp_path / Path(file).name).with_suffix(".json")
    told.write_text(json.dumps(change(json.loads(told.read_text()))))
    home = rung(name).home
    return cubins.read(tmp_path / Path(file).name, home.SOURCE, rung(name).language.compiler())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hash": "0000"}, r"\.json was made from another cutile_tile.py: it says 0000"),
        ({"compiler": "cutile 0.9"}, "from another compiler: it says cutile 0.9, and here is"),
        ({"constants": None}, "does not say its constants"),
        ({"grid": None, "shared": None}, "does not say its grid, shared"),
        ({"cluster": [2, 1, 1]}, r"wants a cluster \[2, 1, 1\]"),
    ],
)
def test_machine_code_of_another_source_or_compiler_is_refused(tmp_path, change, message):
    assert planted_cubin(tmp_path, lambda told: told).name == Path(CUBINS[0][1]).stem

    def changed(told):
        return {x: y for x, y in (told | change).items() if y is not None}

    with pytest.raises(ProductError, match=message):
        planted_cubin(tmp_path, changed)


def test_machine_code_without_its_layout_is_named(tmp_path):
    name, file = CUBINS[0]
    path = tmp_path / "alone.cubin"
    for missing in ("alone.cubin", "alone.json"):
        with pytest.raises(ProductError, match=f"there is no product {missing}; `make languages`"):
            cubins.read(path, rung(name).home.SOURCE, rung(name).language.compiler())
        path.write_bytes(b"")
    path.with_suffix(".json").write_text("{")
    with pytest.raises(ProductError, match="alone.json is not JSON"):
        cubins.read(path, rung(name).home.SOURCE, rung(name).language.compiler())


@pytest.mark.skipif(select().on_gpu, reason="a GPU may run it")
@pytest.mark.parametrize("each", HOPPER, ids=lambda x: x.name)
def test_nothing_here_runs_machine_code(each):
    assert not each.language.runs_here()
    a = torch.zeros((4096, 4096), dtype=getattr(torch, each.dtype))
    with pytest.raises(ValueError, match="is machine code for Hopper; nothing here runs it"):
        each.matmul(a, a)
    (launch,) = withheld.of(each.matmul, a, a)
    assert launch.kernel.name.startswith(each.name)
    assert launch.arguments[0] is a and launch.arguments[2].shape == a.shape
    assert launch.grid == cubins.grid_of(launch.kernel, dict.fromkeys("MNK", 4096))


@pytest.mark.gpu
@pytest.mark.parametrize(("name", "file"), CUBINS)
def test_machine_code_multiplies_on_hopper(name, file):
    each, product = rung(name), of_today(name, file)
    if not each.language.runs_here():
        pytest.skip("needs a Hopper GPU")
    dtype = getattr(torch, each.home.PRODUCTS[file].get("DTYPE", "float16"))
    size = each.home.PRODUCTS[file].get("SIZE", 512)
    a = torch.randint(-3, 4, (size, size), device="cuda").to(dtype)
    b = torch.randint(-3, 4, (size, size), device="cuda").to(dtype)
    c = torch.full_like(a, 7)
    cubins.launch(product, a, b, c)
    # Sums of whole numbers below 2048 are exact in float16, and these are rounded once.
    assert torch.equal(c, (a.double() @ b.double()).to(dtype))


def test_sizes_that_a_kernel_for_hopper_does_not_take_are_quoted():
    made = {"dtype": torch.float16, "device": "cuda" if select().on_gpu else "cpu"}
    a, b = torch.zeros((64, 1001), **made), torch.zeros((1001, 64), **made)
    for name in ("cutile_tile", "cute_tile"):
        with pytest.raises(ValueError, match="N and K must be multiples of 8, got K=1001"):
            rung(name).matmul(a, b)
    with pytest.raises(ValueError, match="nothing is compiled with BM=1, BN=2, BK=3, DTYPE=float1"):
        rung("cutile_tile").matmul(a, b, tile=(1, 2, 3))
    with pytest.raises(ValueError, match="nothing is compiled with BN=64; there is BN=128, STAGES"):
        rung("cute_tile").matmul(a, b, tile=(128, 64, 64))
    with pytest.raises(ValueError, match="a tile is 128×BN×64, got 1×2×3"):
        rung("cute_tile").matmul(a, b, tile=(1, 2, 3))
    flat = torch.zeros(64 * 64 + 1, **made)[1:].reshape(64, 64)
    with pytest.raises(ValueError, match="b must begin at a multiple of 16 bytes, got the addr"):
        rung("cute_tile").matmul(flat.clone(), flat)


def test_a_function_is_cut_out_with_its_decorators():
    text = "x = 1\n\n\n@one\n@two(3)\ndef f(a):\n    return a\n\n\ndef g():\n    pass\n"
    assert function_in(text, "f") == "@one\n@two(3)\ndef f(a):\n    return a\n"
    with pytest.raises(ValueError, match=r"there is no `def h\(`"):
        function_in(text, "h")
