"""Products of Warp and Pallas: arguments as the kernels take them, and what stripping leaves."""

from __future__ import annotations

import importlib.util
import re
import struct
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from tiled_matmul.kit import cubins, withheld  # noqa: E402
from tiled_matmul.kit.backend import select  # noqa: E402
from tiled_matmul.ladder import ch18_7_warp_tile, ch18_8_pallas_tile  # noqa: E402
from tiled_matmul.languages.pallas import PALLAS  # noqa: E402
from tiled_matmul.languages.warp import WARP  # noqa: E402

MADE = {"dtype": torch.float16, "device": "cuda" if select().on_gpu else "cpu"}
SIZES = {"M": 1000, "N": 1192, "K": 489}
ADDRESSES = {"A": 0x7F0000000000, "B": 0x7F1000000000, "C": 0x7F2000000000}


@pytest.fixture(scope="module")
def maker():
    spec = importlib.util.spec_from_file_location("warp_maker", WARP.maker)
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(WARP.maker.parent)
        spec.loader.exec_module(module)
    return module


def product(home, language, file):
    return cubins.read(Path(home.__file__).parent / file, home.SOURCE, language.compiler())


@pytest.mark.parametrize("file", ch18_7_warp_tile.PRODUCTS)
def test_warp_takes_the_grid_of_tiles_and_arrays_with_strides_in_bytes(file):
    constants = ch18_7_warp_tile.PRODUCTS[file]
    step = {"float16": 2, "float32": 4}[constants["DTYPE"]]
    each = product(ch18_7_warp_tile, WARP, file)
    rows, columns = (-(-SIZES[x] // constants[y]) for x, y in (("M", "TM"), ("N", "TN")))
    threads = constants["THREADS"]

    def array(name, height, width):
        return struct.pack(
            "<QQ8i2H4x", ADDRESSES[name], 0, height, width, 0, 0, width * step, step, 0, 0, 2, 0
        )

    assert cubins.packed(each, ADDRESSES, SIZES) == [
        struct.pack("<2I2Q", rows, columns, rows * columns * threads, threads),
        array("A", 1000, 489),
        array("B", 489, 1192),
        array("C", 1000, 1192),
    ]
    assert cubins.grid_of(each, SIZES) == (rows * columns, 1, 1)
    assert each.layout["block"] == [threads, 1, 1]


@pytest.mark.parametrize("file", ch18_7_warp_tile.PRODUCTS)
def test_what_has_been_stripped_is_left_as_it_is(maker, file):
    code = product(ch18_7_warp_tile, WARP, file).code
    assert len(code) < 150_000
    assert maker.stripped(code) == code


def test_attributes_that_name_symbols_are_found(maker):
    body = struct.pack("<BBHI", 4, 0x2F, 8, 7) + struct.pack("<I", 182)  # registers of symbol 7
    body += struct.pack("<BBH", 3, 0x1B, 255)  # a number, without a symbol
    body += struct.pack("<BBHI", 4, 0x17, 4, 9)  # sized, without a symbol
    body += struct.pack("<BBHI", 4, 0x0A, 4, 5)
    assert maker.attributes(body) == [(4, 7), (len(body) - 4, 5)]


def test_the_default_of_warp_is_float32_and_tf32_a_choice():
    counts = {
        constants.get("PRECISION"): product(ch18_7_warp_tile, WARP, file).layout["instructions"]
        for file, constants in ch18_7_warp_tile.PRODUCTS.items()
        if constants["DTYPE"] == "float32"
    }
    assert not any("HMMA" in name for name in counts[None]) and counts[None]["FFMA"] >= 1024
    assert any(re.match(r"HMMA.*TF32", name) for name in counts["tf32"])


def test_the_default_of_pallas_is_tf32_and_float32_a_choice():
    counts = {
        constants.get("PRECISION"): product(ch18_8_pallas_tile, PALLAS, file).layout["instructions"]
        for file, constants in ch18_8_pallas_tile.PRODUCTS.items()
        if constants["DTYPE"] == "float32"
    }
    assert any(re.match(r"HGMMA.*TF32", name) for name in counts[None])
    assert not any("MMA" in name for name in counts["highest"])


def test_pallas_takes_squares_that_it_was_compiled_for():
    a, b = torch.zeros((256, 256), **MADE), torch.zeros((256, 8), **MADE)
    (launch,) = withheld.of(ch18_8_pallas_tile.matmul, a, a)
    assert launch.grid == (2, 2, 1)
    with pytest.raises(ValueError, match="nothing is compiled for 256×8×256 with bm=128, bn=128, "):
        ch18_8_pallas_tile.matmul(a, b)
    with pytest.raises(ValueError, match="precision='high'; there is SIZE=256, BM=128"):
        ch18_8_pallas_tile.matmul(a, a, precision="high")


@pytest.mark.parametrize("file", ch18_8_pallas_tile.PRODUCTS)
def test_pallas_copies_ahead_and_spills_nothing(file):
    constants, each = ch18_8_pallas_tile.PRODUCTS[file], product(ch18_8_pallas_tile, PALLAS, file)
    size = constants["SIZE"]
    assert not any(size % constants[edge] for edge in ("BM", "BN", "BK"))
    assert each.layout["grid"] == [size // constants["BM"], size // constants["BN"], 1]
    assert each.layout["stack"] == 0 and each.layout["instructions"]["LDGSTS"]
    assert not {"LDL", "STL", "LDG"} & set(each.layout["instructions"])


def test_pallas_takes_the_stages_that_it_was_compiled_with():
    a = torch.empty((4096, 4096), **MADE)
    kernels = [
        withheld.of(ch18_8_pallas_tile.matmul, a, a, tile=(128, 256, 64), stages=stages)[0].kernel
        for stages in (None, 4)
    ]
    assert [each.layout["shared"] for each in kernels] == [stages * 49152 for stages in (3, 4)]
    with pytest.raises(ValueError, match="with bm=128, bn=128, bk=64, dtype='float16', stages=4; "):
        ch18_8_pallas_tile.matmul(a, a, stages=4)


def test_warp_takes_any_sizes():
    a, b = torch.zeros((65, 3), **MADE), torch.zeros((3, 130), **MADE)
    (launch,) = withheld.of(ch18_7_warp_tile.matmul, a, b)
    assert launch.grid == (1 * 2, 1, 1)
    with pytest.raises(ValueError, match="nothing is compiled with TM=64, TN=64, TK=64, PRECISIO"):
        ch18_7_warp_tile.matmul(a, b, tile=(64, 64, 64), precision="tf32")
