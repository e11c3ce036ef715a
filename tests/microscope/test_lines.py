"""by_line.py: which instructions of a loop were made for which line of a Triton kernel."""

from collections import Counter

import pytest

from tiled_matmul.kit.variants import edited, function_of
from tiled_matmul.ladder.triton_block_pointers import triton_block_pointers_kernel
from tiled_matmul.microscope.compiled.lines import by_line

HALF_TILES = 2 * 64 * 64 * 2 // 16 // 128  # loads of 16 bytes for each of 128 threads

FIRST = function_of(triton_block_pointers_kernel).__code__.co_firstlineno
HOME = "ch10_triton_block_pointers.py"


def number(text):
    """Return the number of the kernel's line with `text`, in its file."""
    from tiled_matmul.book.page import show_source

    lines = repr(show_source(triton_block_pointers_kernel)).splitlines()
    return FIRST + next(i for i, line in enumerate(lines) if text in line)


def ptx(*, file=HOME, load=None):
    """Return a loop over K, with a wait inside and a store of C behind it."""
    load = load or number("a_values = tl.load")
    dot, store = number("tl.dot"), number("tl.store")
    return f"""
	.file	1 "/somewhere/{file}"
	.file	2 "/elsewhere/standard.py"
	.loc	1 {load} 27
	ld.global.v4.b32 {{ %r1 }}, [ %rd1 + 0 ];
$L__BB0_1:                              // =>This Inner Loop Header: Depth=1
	.loc	1 {load} 27                     // {file}:{load}:27
	setp.lt.s64 	%p1, %rd1, %rd2;
	@%p1 ld.global.v4.b32 {{ %r1, %r2, %r3, %r4 }}, [ %rd1 + 0 ];
	bar.sync 	0;
	st.shared.v4.b32 [ %r5 + 0 ], {{ %r1, %r2, %r3, %r4 }};
	.loc	2 7 1
	barrier.sync 0;
	.loc	1 {dot} 41
	mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {{ %f1 }}, {{ %r1 }};
	mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {{ %f1 }}, {{ %r1 }};
$L__BB0_2:
	mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r9], %r8;
	@%p2 bra 	$L__BB0_2;
	.loc	1 0 25
	@%p3 bra 	$L__BB0_1;
	.loc	1 {store} 4
	bar.sync 	0;
"""


def test_instructions_are_counted_for_their_lines_and_in_the_loop_only():
    found = by_line(triton_block_pointers_kernel, ptx())
    load, dot = found.values()
    assert [line.split(" = ")[0] for line in found] == ["a_values", "acc"]
    # What a function of Triton's own became belongs to the line that called it.
    assert load == {"guards": 1, "global loads": 1, "barriers": 2, "stores into shared memory": 1}
    assert dot == {"products": 2, "waits": 1}


def test_a_variant_of_the_kernel_has_lines_of_its_own():
    other = edited(triton_block_pointers_kernel, "padding_option", "padding_option ")
    with pytest.raises(ValueError, match="does not say which lines"):
        by_line(other, ptx())


def test_ptx_without_a_loop_or_of_another_file_is_refused():
    with pytest.raises(ValueError, match="no loop"):
        by_line(triton_block_pointers_kernel, ptx().replace("bra", "call"))
    with pytest.raises(ValueError, match="does not say which lines"):
        by_line(triton_block_pointers_kernel, ptx(file="other.py"))
    with pytest.raises(ValueError, match="is no line of"):
        by_line(triton_block_pointers_kernel, ptx(load=FIRST + 200))


@pytest.mark.long
@pytest.mark.parametrize(("cc", "products"), [((8, 0), 32), ((9, 0), 4)])
def test_what_the_compiler_makes_is_chapter_5s_loop_again(cc, products):
    import torch

    from tiled_matmul.microscope.compiled.triton import tile_code

    x = torch.empty(1024, 1024, dtype=torch.float16, device="meta")
    arguments = (x, x, x, *[1024] * 3, *[1024, 1] * 3, 64, 64, 64, "tf32")
    options = {"cc": cc, "num_warps": 4, "num_stages": 1}
    code = tile_code(triton_block_pointers_kernel, *arguments, **options)
    found = sum(by_line(triton_block_pointers_kernel, code.ptx).values(), Counter())
    assert found["barriers"] == 2 and found["products"] == products
    # With one stage nothing is copied ahead, and only wgmma runs by itself.
    assert found["waits for copies"] == 0 and found["waits for products"] == (cc == (9, 0))
    assert found["global loads"] == found["stores into shared memory"] == HALF_TILES
    assert code.shared_bytes == 2 * 64 * 64 * 2
