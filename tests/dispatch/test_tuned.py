"""dispatch/tuned.py: in `tuning` a clock decides; its choice is remembered and kept in a file."""

from __future__ import annotations

import json
import threading
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from tiled_matmul.check import assert_matmul, poison  # noqa: E402
from tiled_matmul.dispatch import rule, tuned  # noqa: E402
from tiled_matmul.dispatch.candidates import split_k  # noqa: E402
from tiled_matmul.dispatch.choice import RUNGS, Choice  # noqa: E402
from tiled_matmul.dispatch.costs import Product  # noqa: E402
from tiled_matmul.dispatch.rule import MODELLED, RINGS_TRIED, SMALL_TRIED  # noqa: E402
from tiled_matmul.ladder import triton_best  # noqa: E402


@pytest.fixture(autouse=True)
def nothing_known():
    tuned.forget()
    yield
    tuned.forget()


def half(m, k):
    return torch.randn(m, k, device="cuda").half()


def prefer(monkeypatch, module):
    """Let the clock find the candidates of one rung the fastest, and count what it times."""
    timed = []

    def milliseconds(call):
        timed.append(call.args[0])
        call()
        return 1.0 if timed[-1].module == module else 2.0

    monkeypatch.setattr(tuned, "milliseconds", milliseconds)
    return timed


def test_the_contenders_are_the_rule_s_choice_and_others_each_once():
    for shape in ((3072, 3072, 3072), (64, 2048, 4096), (20, 4096, 4096), (100, 100, 1001)):
        product = Product(*shape, 132)
        found = rule.contenders(product)
        assert found[0] == rule.chosen(product)
        assert 5 < len(found) <= 1 + SMALL_TRIED + MODELLED + RINGS_TRIED
        assert all(each not in found[:i] for i, each in enumerate(found))
        assert {each.module for each in found} <= set(RUNGS)
    assert len(rule.contenders(product, (8, 0))) == 1
    assert len(rule.contenders(product, (9, 0), 4)) == 1


def test_a_choice_is_the_same_after_a_file(tmp_path):
    choices = [split_k((64, 128, 128), 3), *rule.contenders(Product(3072, 3072, 3072, 132))]
    for choice in choices:
        assert Choice.parse(json.loads(json.dumps(vars(choice)))) == choice


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("no json", "is not JSON"),
        ("[]", "is not a file of tuned products"),
        ('{"64x64x64": {"module": "triton_best"}}', "is not a file of tuned products"),
        (
            '{"64x64x64": {"module": "os", "options": {}, "turned": false}}',
            "'module': 'os'.* is no rung of triton_swizzled, ",
        ),
        (
            '{"64x64x64": {"module": "triton_split_k", "options": {}, "turned": 1}}',
            "'turned': 1} is no rung",
        ),
    ],
)
def test_a_file_of_other_content_is_refused_and_kept(tmp_path, text, match):
    file = tmp_path / "tuned.json"
    file.write_text(text)
    with pytest.raises(ValueError, match=match), tuned.tuning(file):
        raise AssertionError("it went on")
    assert file.read_text() == text


def test_a_new_file_is_made_and_an_error_inside_passes(tmp_path):
    file = tmp_path / "tuned.json"
    with pytest.raises(KeyError, match="mine"), tuned.tuning(file):
        raise KeyError("mine")
    assert json.loads(file.read_text()) == {}
    with tuned.tuning(file):
        a, b = torch.randn(20, 30), torch.randn(30, 40)
        assert tuned.choice(a, b, a @ b, list, print) is None  # not on a GPU: no clock


def test_the_clock_gets_what_runs_a_choice(monkeypatch):
    monkeypatch.setattr(tuned, "_kind", lambda *operands: "a kind")
    monkeypatch.setattr(tuned, "milliseconds", lambda call: call())
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    a, b, out = SimpleNamespace(is_cuda=True), "b", "out"
    slow, none, fast = map(Choice, ("triton_persistent", "gluon_shapes", "triton_uneven"))
    ran = []

    def run(*given):
        ran.append(given)
        if given[0] == none:
            raise ValueError("its tiles do not fit")
        return 1.0 if given[0] == fast else 2.0

    with tuned.tuning():
        assert tuned.choice(a, b, out, lambda: [slow, none, fast], run) == fast
    assert ran == [(choice, a, b, out) for choice in (slow, none, fast)]
    assert tuned.choice(a, b, out, list, run) == fast and len(ran) == 3


@pytest.mark.parametrize(("ms", "launches"), [(0.002, [3, 150]), (0.05, [3, 6]), (40.0, [3])])
def test_a_sample_is_filled_with_launches_of_a_graph(monkeypatch, ms, launches):
    """A call alone takes as long as its host: sized by it, a short sample took the slower half."""
    made = []
    monkeypatch.setattr(tuned, "_replayed", lambda call, count: made.append(count) or ms)
    assert tuned.milliseconds(lambda: None) == ms and made == launches


@pytest.mark.gpu
def test_the_fastest_is_taken_and_remembered(monkeypatch, tmp_path):
    timed = prefer(monkeypatch, "triton_split_k")
    a, b = half(256, 4096), half(4096, 256)
    assert_matmul(triton_best.matmul(a, b), a, b)  # by the rule, and now it has a plan
    file = tmp_path / "tuned.json"
    with tuned.tuning(file):
        for _ in range(2):
            out = poison(torch.empty(256, 256, dtype=a.dtype, device="cuda"))
            assert_matmul(triton_best.matmul(a, b, out=out), a, b)
        other = half(256, 2048), half(2048, 256)
        count = len(timed)
        assert_matmul(triton_best.matmul(*other), *other)  # another kind
    assert 5 < count < len(timed)
    count = len(timed)
    assert triton_best.choice_for(a, b).module == "triton_split_k"
    out = poison(torch.empty(256, 256, dtype=a.dtype, device="cuda"))
    assert_matmul(triton_best.matmul(a, b, out=out), a, b)
    # Another layout or alignment is another kind, which the rule decides outside.
    assert triton_best.choice_for(b.T, b) == rule.chosen(*rule.kind_of(b.T, b, out))
    kept = json.loads(file.read_text())
    assert len(kept) == 2 and any("256x256x4096 float16, (4096, 1) of 8" in x for x in kept)
    tuned.forget()
    assert triton_best.choice_for(a, b) == rule.chosen(*rule.kind_of(a, b, out))
    with tuned.tuning(file):
        assert triton_best.choice_for(a, b).module == "triton_split_k"
    assert len(timed) == count


@pytest.mark.gpu
def test_a_plan_holds_the_fastest_alone(monkeypatch):
    """What was tried is launched while the plan is noted, and is no part of it."""
    prefer(monkeypatch, "triton_descriptors")
    a, b = half(512, 512), half(512, 512)
    with tuned.tuning():
        triton_best.matmul(a, b)
    [plan] = triton_best.matmul.plans.values()
    assert len(plan.steps) == 1
    a.copy_(half(512, 512))
    assert_matmul(triton_best.matmul(a, b), a, b)


@pytest.mark.gpu
def test_the_clock_decides_and_gradients_are_tuned_too():
    from tiled_matmul.torch import matmul, tuning

    a, b = half(200, 1000).requires_grad_(), half(1000, 72).requires_grad_()
    with tuning():
        matmul(a, b).sum().backward()
    assert len(tuned._known) == 3  # the product, and two more in another thread
    ones = torch.ones(200, 72, device="cuda").half()
    assert_matmul(a.grad, ones, b.detach().T)
    assert_matmul(b.grad, a.detach().T, ones)


@pytest.mark.gpu
def test_a_capture_is_refused_in_words_and_a_tuned_product_captured():
    a, b = half(128, 256), half(256, 128)
    out = torch.empty(128, 128, dtype=a.dtype, device="cuda")
    triton_best.matmul(a, b, out=out)
    with tuned.tuning():
        with pytest.raises(RuntimeError, match="128x128x256 float16.* cannot be timed while"):
            with torch.cuda.graph(torch.cuda.CUDAGraph()):
                triton_best.matmul(a, b, out=out)
        torch.cuda.synchronize()
        triton_best.matmul(a, b, out=out)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            triton_best.matmul(a, b, out=out)
    poison(out)
    graph.replay()
    assert_matmul(out, a, b)


@pytest.mark.gpu
def test_threads_that_ask_at_once_get_one_answer():
    a, b = half(320, 640), half(640, 96)
    right = []

    def ask():
        out = poison(torch.empty(320, 96, dtype=a.dtype, device="cuda"))
        triton_best.matmul(a, b, out=out)
        torch.cuda.synchronize()
        assert_matmul(out, a, b)
        right.append(triton_best.choice_for(a, b))

    with tuned.tuning():
        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(right) == 4 and all(each == right[0] for each in right)
