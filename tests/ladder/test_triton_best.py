"""triton_best: the rung that is chosen runs, and operands are checked once on the way to it."""

from __future__ import annotations

import threading

import pytest
import torch

from tiled_matmul.check import run_checked
from tiled_matmul.dispatch import rule
from tiled_matmul.dispatch.choice import RUNGS, Choice
from tiled_matmul.kit import arguments
from tiled_matmul.kit.backend import select
from tiled_matmul.kit.withheld import withheld
from tiled_matmul.ladder import rung, triton_best

PLACE = "cuda" if select().on_gpu else "cpu"
PARTS = ("_check_tensors", "_sizes", "_check_out", "_check_own_elements", "_check_apart")
# M×N×K, how a, b and out lie ("n" by rows, "t" by columns), and the rung that is chosen.
LARGE = [
    ((1024, 1024, 1024), "nnn", "gluon_shapes"),
    ((2210, 3810, 57), "nnn", "triton_descriptors"),
    ((4096, 4096, 64), "tnt", "gluon_shapes"),
    ((384, 256, 5120), "ntn", "triton_split_k"),
    ((3967, 544, 16), "nnn", "triton_uneven"),
    ((2296, 944, 16), "nnt", "triton_uneven"),
    ((1424, 2832, 24), "nnn", "gluon_shapes"),
    ((1632, 3576, 24), "ttt", "gluon_shapes"),
    ((3000, 3000, 3000), "nnn", "gluon_shapes"),
]
# What is chosen where no rings run.
PLAIN = [
    ((4096, 4096, 64), "tnt", "triton_persistent"),
    ((3000, 3000, 3000), "nnn", "triton_persistent"),
]
SMALL = [
    ((33, 17, 21), "nnn", "triton_uneven"),
    ((16, 2358, 18), "nnn", "triton_uneven"),
    ((8, 300, 32), "ttn", "triton_uneven"),
    ((40, 24, 16), "nnt", "triton_uneven"),
]


def empty(rows, columns, lies="n", dtype=torch.float16):
    x = torch.zeros((rows, columns)[:: 1 if lies == "n" else -1], dtype=dtype, device=PLACE)
    return x if lies == "n" else x.T


def operands(m, n, k, lie, dtype=torch.float16):
    return empty(m, k, lie[0], dtype), empty(k, n, lie[1], dtype), empty(m, n, lie[2], dtype)


@pytest.fixture
def counted(monkeypatch):
    """Count the calls of each part of the check."""
    counts = dict.fromkeys(PARTS, 0)

    def counting(part, check):
        def count(*given, **named):
            counts[part] += 1
            return check(*given, **named)

        return count

    for part in PARTS:
        monkeypatch.setattr(arguments, part, counting(part, getattr(arguments, part)))
    return counts


def hopper():
    gpu = select().gpu
    return gpu is None or gpu.capability == (9, 0)


@pytest.fixture
def without_rings(monkeypatch):
    monkeypatch.setattr(rule, "RINGED", None)
    rule.chosen.cache_clear()
    yield
    rule.chosen.cache_clear()


@pytest.mark.skipif(not hopper(), reason="the rule of compute capability 9.0")
@pytest.mark.parametrize(("shape", "lie", "module"), PLAIN)
def test_so_they_are_where_no_rings_run(counted, without_rings, shape, lie, module):
    test_operands_are_checked_once_on_the_way_to_each_rung(counted, shape, lie, module)


@pytest.mark.skipif(not hopper(), reason="the rule of compute capability 9.0")
@pytest.mark.parametrize(("shape", "lie", "module"), LARGE + SMALL)
def test_operands_are_checked_once_on_the_way_to_each_rung(counted, shape, lie, module):
    a, b, out = operands(*shape, lie)
    with withheld() as launches:
        assert rung("triton_best").matmul(a, b, out=out) is out
        assert counted == dict.fromkeys(PARTS, 1)
        assert launches
        rung("triton_best").matmul(a, b)  # a new out needs no check
    once = dict.fromkeys(PARTS, 1)
    assert counted == once | {"_check_tensors": 2, "_sizes": 2}
    assert triton_best.choice_for(a, b, out).module == module
    assert counted["_check_tensors"] == 3


@pytest.mark.parametrize(("shape", "lie", "module"), SMALL)
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
def test_small_products_are_right_after_one_check(counted, shape, lie, module, dtype):
    a, b, out = operands(*shape, lie, dtype)
    for x in (a, b):
        x.copy_(torch.randint(-3, 4, x.shape))
    run_checked(rung("triton_best").matmul, a, b)
    assert counted["_check_tensors"] == counted["_sizes"] == 1
    rung("triton_best").matmul(a, b, out=out)
    assert counted["_check_tensors"] == counted["_sizes"] == 2
    assert torch.equal(out.float(), a.float() @ b.float())


def test_turned_views_are_checked_once(counted):
    wide = torch.zeros(64, 200, dtype=torch.float16, device=PLACE)
    a, b, out = wide[::2, :96:2], wide[:48, 100:140], empty(40, 32).T
    rung("triton_best").matmul(a, b, out=out)
    assert counted == dict.fromkeys(PARTS, 1)


def bad():
    """Return operands that are refused, by fault."""
    a, b, out = operands(32, 48, 64, "nnn")
    room = torch.zeros(32 * 64 + 32 * 48, dtype=a.dtype, device=PLACE)
    overlapping = room[: 32 * 64].view(32, 64), b, room[32 * 63 : 32 * 63 + 32 * 48].view(32, 48)
    return {
        "a list": ([[1.0]], b, out),
        "3-D": (a[None], b, out),
        "empty": (a[:0], b, out),
        "sizes": (a, b[:63], out),
        "dtype": (a.double(), b, out),
        "dtypes": (a, b.bfloat16(), out),
        "gradient": (a.clone().requires_grad_(), b, out),
        "shape of out": (a, b, out.T),
        "dtype of out": (a, b, out.float()),
        "device of out": (a, b, out.to("meta")),
        "shared elements": (a, b, out[:1].expand(32, 48)),
        "shared memory": overlapping,
        "no tensor": (a, b, "out"),
    }


@pytest.mark.parametrize("fault", bad())
def test_bad_operands_are_refused_in_the_words_of_other_rungs(fault):
    a, b, out = bad()[fault]
    said = []
    for matmul in (
        rung("triton_best").matmul,
        triton_best.choice_for,
        rung("triton_uneven").matmul,
    ):
        with pytest.raises((TypeError, ValueError)) as caught:
            matmul(a, b, out=out)
        said.append((caught.type, str(caught.value)))
    assert said[0] == said[1] == said[2]


def test_a_launcher_trusts_within_the_rung_alone(monkeypatch):
    """What a launcher raises, or another thread asks, is checked."""
    a, b, out = operands(32, 48, 64, "nnn")
    in_thread = []

    def elsewhere():
        try:
            arguments.tensor_operands(a, b[:63], out, ("float16",))
        except ValueError as error:
            in_thread.append(error)

    def fails(*operands, **options):
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        raise KeyError("mine")

    class Other:
        matmul = staticmethod(fails)

    with monkeypatch.context() as patch:
        patch.setattr(triton_best, "rung", lambda name: Other)
        with pytest.raises(KeyError, match="mine"):
            triton_best.run(Choice("triton_uneven"), a, b, out)
    assert len(in_thread) == 1
    with pytest.raises(ValueError, match="must be equal"):
        rung("triton_uneven").matmul(a, b[:63], out=out)


def test_every_rung_that_can_be_chosen_takes_the_same_dtypes():
    assert all(rung(name).dtypes == triton_best.DTYPES for name in RUNGS)
