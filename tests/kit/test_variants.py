"""variants.py: a kernel but for a line, with its line numbers, its constants and its source."""

import numpy as np
import pytest
from numba import cuda

from tiled_matmul.book.page import show_source
from tiled_matmul.kit.constants import with_constants
from tiled_matmul.kit.unroll import unroll, unrolled
from tiled_matmul.kit.variants import edited, matmul_with, without
from tiled_matmul.ladder import cuda_coalesced, cuda_naive
from tiled_matmul.microscope.cuda import trace
from tiled_matmul.problem import Problem

STEP = 10


@cuda.jit
def ladder_of_adds(x):
    i = cuda.threadIdx.x
    x[i] += 1
    if i > 1:
        x[i] += STEP
    x[i] += 100


def result(kernel):
    x = np.zeros(3, np.int32)
    return trace(kernel, 1, 3, x), x.tolist()


def test_nothing_is_changed_in_the_kernel_itself():
    without(ladder_of_adds, "x[i]")
    edited(ladder_of_adds, "+=", "-=")
    assert result(ladder_of_adds)[1] == [101, 101, 111]


def test_one_of_several_lines_goes():
    assert result(without(ladder_of_adds, "x[i] +=", 0))[1] == [100, 100, 110]
    assert result(without(ladder_of_adds, "x[i] +=", 2))[1] == [1, 1, 11]
    assert result(without(ladder_of_adds, "x[i] +="))[1] == [0, 0, 0]


def test_a_block_may_lose_its_only_line():
    broken = without(ladder_of_adds, "STEP")
    assert result(broken)[1] == [101, 101, 101]
    assert "        pass  # x[i] += STEP\n" in repr(show_source(broken))


def test_text_is_replaced():
    assert result(edited(ladder_of_adds, "i > 1", "i > 0"))[1] == [101, 111, 111]
    assert result(edited(ladder_of_adds, "x[i] +=", "x[i] -=", 1))[1] == [101, 101, 91]


def test_constants_are_kept_and_can_be_given():
    broken = edited(ladder_of_adds, "i > 1", "i > 0")
    assert result(with_constants(broken, STEP=20))[1] == [101, 121, 121]


def test_variants_of_variants():
    broken = without(without(ladder_of_adds, "+= 1\n", 0), "STEP")
    assert result(broken)[1] == [100, 100, 100]


@cuda.jit(max_registers=40)
@unrolled
def copies(x):
    for k in unroll(STEP):
        x[k] += 1


def test_options_and_loops_that_are_written_out_are_kept():
    broken = edited(copies, "+= 1", "+= 2")
    assert broken.targetoptions["max_registers"] == 40
    assert broken.py_func.as_written is not broken.py_func
    assert len(broken.py_func.__code__.co_code) > len(broken.py_func.as_written.__code__.co_code)
    x = np.zeros(12, np.int32)
    trace(with_constants(broken, STEP=11), 1, 1, x)
    assert x.tolist() == [2] * 11 + [0]


def test_two_variants_do_not_get_into_each_others_way():
    first = without(ladder_of_adds, "x[i] +=", 0)
    second = without(ladder_of_adds, "x[i] +=", 2)
    assert (result(first)[1], result(second)[1]) == ([100, 100, 110], [1, 1, 11])


def test_lines_are_counted_from_the_first_decorator():
    # The decorators, left out, keep their lines.
    t, _ = result(without(ladder_of_adds, "STEP"))
    assert {site.line for site in t.sites} == {4, 7}
    assert t.sites[0].source == "x[i] += 1"
    again, _ = result(without(without(ladder_of_adds, "STEP"), "+= 100"))
    assert {site.line for site in again.sites} == {4}


def test_a_launcher_takes_a_variant():
    a, b = Problem(3, 4, 5).inputs(kind="integers", device="cpu")
    broken = edited(cuda_coalesced.cuda_coalesced_kernel, "= acc", "= -acc")
    negative = matmul_with(cuda_coalesced, broken)
    assert (negative(a, b) == -(a @ b)).all()
    assert (cuda_coalesced.matmul(a, b) == a @ b).all()
    with pytest.raises(ValueError, match="3"):
        negative(a, a)
    assert (cuda_coalesced.matmul(a, b) == a @ b).all()
    with pytest.raises(ValueError, match="cuda_naive has no kernel cuda_coalesced_kernel"):
        matmul_with(cuda_naive, broken)


def test_what_is_not_there_is_quoted():
    with pytest.raises(ValueError, match=r"ladder_of_adds has no line with 'syncthreads'"):
        without(ladder_of_adds, "syncthreads")
    with pytest.raises(ValueError, match=r"has 3 lines with 'x\[i\] \+=': there is no number 3"):
        without(ladder_of_adds, "x[i] +=", 3)
    with pytest.raises(ValueError, match="no line with ''"):
        edited(ladder_of_adds, "", "x")


def test_nonsense_is_refused():
    with pytest.raises(SyntaxError):
        edited(ladder_of_adds, "i > 1", "i >")


def test_triton_kernels_have_variants_too():
    import torch

    from tiled_matmul.book.page import changes
    from tiled_matmul.kit import backend
    from tiled_matmul.ladder import triton_block_pointers as rung

    device = "cuda" if backend.select().on_gpu else "cpu"
    shapes = ((16, 32), (32, 16))
    a, b = (torch.ones(shape, dtype=torch.float16, device=device) for shape in shapes)
    kernel = rung.triton_block_pointers_kernel
    twice = edited(kernel, "acc.to(", "(acc + acc).to(")
    assert repr(changes(kernel, twice)).count("\n") == 2
    assert matmul_with(rung, twice)(a, b, block=(16, 16, 16)).unique().tolist() == [64]
    assert rung.matmul(a, b, block=(16, 16, 16)).unique().tolist() == [32]
    once = without(kernel, "a_tile = tl.advance")
    assert matmul_with(rung, once)(2 * a, b, block=(16, 16, 16)).unique().tolist() == [64]
    with pytest.raises(ValueError, match="has no kernel"):
        matmul_with(cuda_naive, twice)


def test_a_variant_runs_without_plans(monkeypatch):
    from tiled_matmul.kit import plans

    seen = []
    monkeypatch.setattr(cuda_naive, "matmul", lambda a, b: seen.append(plans._noted.pauses))
    matmul_with(cuda_naive, edited(cuda_naive.cuda_naive_kernel, "acc +=", "acc -="))(None, None)
    assert seen == [1] and plans._noted.pauses == 0


@pytest.mark.gpu
def test_no_plan_mixes_up_a_variant_and_its_kernel():
    import torch

    from tiled_matmul.ladder import triton_block_pointers as rung

    twice = matmul_with(
        rung, edited(rung.triton_block_pointers_kernel, "acc.to(", "(acc + acc).to(")
    )
    for size, order in ((16, (rung.matmul, twice)), (32, (twice, rung.matmul))):
        a = torch.ones(size, size, dtype=torch.float16, device="cuda")
        for matmul in order * 2:
            wanted = 2 * size if matmul is twice else size
            assert matmul(a, a, block=(16, 16, 16)).unique().tolist() == [wanted]


def test_a_role_of_a_kernel_in_gluon_can_be_exchanged():
    from tiled_matmul.kit.variants import with_functions
    from tiled_matmul.ladder import gluon_specialised as module

    kernel = module.gluon_specialised_kernel
    silent = edited(module.multiply, "mbarrier.arrive(empty.index(before), pred=step > 0)", "pass")
    changed = with_functions(kernel, multiply=silent)
    assert silent.is_gluon() and changed.is_gluon()
    assert changed.fn.__globals__["multiply"] is silent
    assert changed.fn.__globals__["copy"] is module.copy
    assert kernel.fn.__globals__["multiply"] is module.multiply
    with pytest.raises(ValueError, match="gluon_specialised_kernel calls no divide; it has "):
        with_functions(kernel, divide=silent)
