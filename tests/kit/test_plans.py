"""A launcher's plans: what is remembered gives what a first call gives, and nothing else does."""

from __future__ import annotations

import threading

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from tiled_matmul.check import assert_matmul, poison  # noqa: E402
from tiled_matmul.kit import plans  # noqa: E402
from tiled_matmul.ladder import LADDER, rung  # noqa: E402
from tiled_matmul.microscope.cuda.kernel import watch  # noqa: E402

# Of `cuda_transposed` there are three in the ladder, with one launcher: it takes any layout.
HERE = [r for r in LADDER if r.available and r.module == r.name]
REMEMBERED = [r.name for r in HERE if hasattr(r.matmul, "plans")]
gpu = pytest.mark.gpu
each = pytest.mark.parametrize("name", REMEMBERED)
SHAPES = ((64, 64, 64), (200, 136, 72), (33, 70, 50), (1, 300, 64), (257, 129, 65))


def operands(name, m, n, k, seed=0):
    dtype = torch.float16 if "float16" in rung(name).dtypes else torch.float32
    numbers = torch.Generator("cuda").manual_seed(seed)
    made = [torch.randn(shape, device="cuda", generator=numbers) for shape in ((m, k), (k, n))]
    return [x.to(dtype) for x in made]


def steps(name) -> int:
    return sum(plan.steps is not None for plan in rung(name).matmul.plans.values())


def test_the_rungs_that_remember_are_known():
    assert set(REMEMBERED) > {"triton_best", "triton_swizzled", "gluon_shapes", "cuda_best"}


@gpu
@each
def test_a_later_call_computes_what_the_first_one_does(name):
    matmul = rung(name).matmul
    matmul.plans.clear()
    for m, n, k in SHAPES:
        for seed in range(3):
            a, b = operands(name, m, n, k, seed)
            out = poison(a.new_empty((m, n)))
            assert matmul(a, b, out=out) is out
            assert_matmul(out, a, b)
            assert_matmul(matmul(a, b), a, b)
    assert steps(name) > 0


@gpu
@pytest.mark.parametrize("name", [x for x in REMEMBERED if x.startswith("cuda")])
def test_what_has_a_plan_is_traced_all_the_same(name):
    matmul = rung(name).matmul
    a, b = operands(name, 32, 32, 32)
    matmul(a, b)
    matmul(a, b)
    assert steps(name) > 0
    with watch(blocks=[(0, 0)]) as traces:
        matmul(a, b)
    assert traces[0].global_loads.lanes > 0


@gpu
@each
def test_other_strides_and_addresses_are_other_plans(name):
    matmul, strided = rung(name).matmul, name.startswith("triton")
    a, b = operands(name, 96, 80, 64)
    matmul(a, b)
    room = torch.zeros(96 * 64 + 1, dtype=a.dtype, device="cuda")
    odd = room[1:].view(96, 64).copy_(a)  # its address is a multiple of 4 bytes or 2
    assert odd.stride() == a.stride()
    assert_matmul(matmul(odd, b), odd, b)
    if strided:
        assert_matmul(matmul(a, b.T.contiguous().T), a, b)
        assert_matmul(matmul(a.T.contiguous().T, b), a, b)
        wide = torch.zeros(96, 100, dtype=a.dtype, device="cuda")[:, :64].copy_(a)
        assert_matmul(matmul(wide, b), a, b)
        out = torch.zeros(80, 96, dtype=a.dtype, device="cuda").T
        assert_matmul(matmul(a, b, out=out), a, b)


@gpu
@each
def test_what_a_first_call_refuses_a_later_one_does_too(name):
    matmul = rung(name).matmul
    room = torch.randn(4 * 64 * 64, device="cuda")
    a, b = (x.clone() for x in operands(name, 64, 64, 64))
    room = room.to(a.dtype)
    first, second, third = (room[i * 4096 : (i + 1) * 4096].view(64, 64) for i in range(3))
    matmul(first, second, out=third)
    matmul(first, second, out=third)
    for out in (first, second, room[2048:6144].view(64, 64)):
        with pytest.raises(ValueError, match="shares memory with"):
            matmul(first, second, out=out)
    with pytest.raises(ValueError, match="requires grad"):
        matmul(a.requires_grad_(), b)
    with pytest.raises(ValueError, match="must be equal"):
        matmul(a.detach()[:, :63].contiguous(), b)
    with pytest.raises(TypeError, match="int32"):
        matmul(a.detach(), b.int())


@gpu
def test_options_of_another_type_are_not_taken_for_those_remembered():
    matmul = rung("triton_swizzled").matmul
    a, b = operands("triton_swizzled", 64, 64, 64)
    matmul(a, b, group_m=1)
    with pytest.raises(TypeError, match="group_m must be an int, got True"):
        matmul(a, b, group_m=True)


@gpu
@each
def test_one_matrix_may_be_both_operands(name):
    matmul = rung(name).matmul
    a, b = operands(name, 64, 64, 64)
    for _ in range(2):
        assert_matmul(matmul(a, a), a, a)
        assert_matmul(matmul(a, b), a, b)


@gpu
@each
def test_plans_run_in_graphs_on_streams_and_in_threads(name):
    matmul = rung(name).matmul
    a, b = operands(name, 96, 80, 64)
    out = torch.empty(96, 80, dtype=a.dtype, device="cuda")
    matmul(a, b, out=out)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        matmul(a, b, out=out)
    poison(out)
    graph.replay()
    assert_matmul(out, a, b)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(20_000_000)  # the product must wait for this stream, not for another
        late = a.clone()
        other = matmul(late, b)
    stream.synchronize()
    assert_matmul(other, a, b)
    failed = []

    def many(seed):
        try:
            x, y = operands(name, 96, 80, 64, seed)
            for _ in range(50):
                assert_matmul(matmul(x, y), x, y)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=many, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []


@gpu
@pytest.mark.gpus
@each
def test_operands_on_the_second_gpu_are_multiplied_there(name):
    matmul = rung(name).matmul
    a, b = operands(name, 96, 80, 64)
    for device in ("cuda:0", "cuda:1", "cuda:0", "cuda:1"):
        x, y = a.to(device), b.to(device)
        c = matmul(x, y)
        assert c.device == x.device
        assert_matmul(c, x, y)


@gpu
def test_a_plan_keeps_no_tensor_alive():
    matmul = rung("triton_best").matmul
    matmul.plans.clear()
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    a, b = operands("triton_best", 1024, 1024, 1024)
    matmul(a, b)
    matmul(a, b)
    del a, b
    assert torch.cuda.memory_allocated() == before


@gpu
def test_old_plans_go_when_there_are_too_many(monkeypatch):
    monkeypatch.setattr(plans, "MOST_PLANS", 3)
    matmul = rung("triton_swizzled").matmul
    matmul.plans.clear()
    for n in range(16, 23):
        a, b = operands("triton_swizzled", 16, n, 16)
        assert_matmul(matmul(a, b), a, b)
    assert len(matmul.plans) <= 3


def test_in_the_interpreter_launchers_run_as_they_are():
    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    matmul = rung("triton_swizzled").matmul
    a, b = torch.ones(16, 16), torch.ones(16, 16)
    assert bool((matmul(a, b) == 16).all())
    assert matmul.plans == {}
