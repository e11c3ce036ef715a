"""tile_code.py's `widths`: how many bytes a thread's accesses move, read from PTX by hand."""

from collections import Counter

import pytest
import torch

from tiled_matmul.kit.programs import launched
from tiled_matmul.ladder import triton_swizzled
from tiled_matmul.microscope.compiled.triton import TileCode, tile_codes

PTX = """
    @%p1 ld.global.v4.b32 { %r1, %r2, %r3, %r4 }, [ %rd1 + 0 ];
    ld.global.b16 { %rs1 }, [ %rd2 + 0 ];
    ld.global.L1::evict_last.v2.f32 { %f1, %f2 }, [ %rd2 + 0 ];
    ld.shared.v4.b32 { %r1 }, [ %r2 ];
    @%p2 cp.async.cg.shared.global [ %r10 + 0 ], [ %rd3 + 0 ], 0x10, %r11;
    @%p2 cp.async.ca.shared.global [ %r10 + 4 ], [ %rd3 + 4 ], 4, %r11;
    cp.async.commit_group;
    st.global.v4.b32 [ %rd4 + 0 ], { %r1, %r2, %r3, %r4 };
    st.global.b16 [ %rd4 + 0 ], { %rs1 };
"""


def test_widths_are_read_from_the_ptx():
    code = TileCode("k", (9, 0), 8, 1, 0, 0, "", PTX, None)
    assert code.widths == {
        "loads": Counter({16: 1, 2: 1, 8: 1}),
        "copies": Counter({16: 1, 4: 1}),
        "stores": Counter({16: 1, 2: 1}),
    }


@pytest.fixture(scope="module")
def codes():
    """The kernel of chapter 11 for a B of 64×n whose rows are `row` elements apart."""
    jobs = {}
    for name, (n, row, hints) in {
        "whole": (512, 512, True),
        "whole, no hints": (512, 512, False),
        "padded": (504, 512, True),
        "padded, no hints": (504, 512, False),
        "dense": (504, 504, True),
    }.items():
        a = torch.empty((128, 64), dtype=torch.float16)
        b = torch.empty((64, row), dtype=torch.float16)[:, :n]
        block = {"block": (128, 128, 64), "hints": hints}
        [jobs[name]] = launched(triton_swizzled.matmul, a, b, **block)
    return tile_codes(jobs)


@pytest.mark.long
def test_hints_widen_copies_only_where_16_divides_the_rows_and_not_n(codes):
    widest = {name: max(code.widths["copies"], default=0) for name, code in codes.items()}
    narrow = {name: code.widths["loads"][2] for name, code in codes.items()}
    assert widest["whole"] == widest["whole, no hints"] == widest["padded"] == 16
    assert codes["whole"].ptx == codes["whole, no hints"].ptx
    assert narrow["whole"] == narrow["padded"] == 0
    assert narrow["padded, no hints"] > 0 and narrow["dense"] > 0
