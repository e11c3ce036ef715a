"""Kernels in other languages on a page: as they are written, and what one of them wrote."""

import pytest

from tiled_matmul.ladder import ABROAD
from tiled_matmul.page import show_abroad, show_written


@pytest.mark.parametrize("each", ABROAD, ids=lambda each: each.name)
def test_a_kernel_is_shown_with_its_imports_and_nothing_that_compiles_it(each):
    shown = repr(show_abroad(each.name))
    assert each.kernel.strip() in shown and "import " in shown
    assert not shown.startswith('"""') and "def main" not in shown
    assert max(map(len, shown.splitlines())) <= 91
    assert "highlight" in show_abroad(each.name)._repr_html_()


def test_what_helion_wrote_is_shown_without_comments_in_lines_that_fit():
    shown = repr(show_written("helion_tile-128-256-64"))
    assert shown.startswith("@triton.jit") and "tl.dot(" in shown
    assert "src[" not in shown and "_launcher" not in shown
    assert max(map(len, shown.splitlines())) <= 91


def test_what_is_not_abroad_is_an_error():
    with pytest.raises(ValueError, match="'cuda_naive' is in no other language; these are: mojo_m"):
        show_abroad("cuda_naive")
    with pytest.raises(ValueError, match="no text in Triton lies beside a product 'cute_tile"):
        show_written("cute_tile-256-4")
