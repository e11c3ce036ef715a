"""Every cut is right on every rank and moves what the model says, and faults are found."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from tiled_matmul.distributed import RanksError, clock, cuts, run, tried  # noqa: E402
from tiled_matmul.distributed.cuts import CUTS, GPUS_ONLY  # noqa: E402
from tiled_matmul.distributed.pending import Pending  # noqa: E402
from tiled_matmul.models.distributed import channels, held, received  # noqa: E402

M, N, K = 96, 120, 144
ON_CPU = [name for name in CUTS if name not in GPUS_ONLY]


def task(cut, **more):
    sizes = {"m": M, "n": N, "k": K, "dtype": "float16", "whole": True}
    return {"do": "check", "cut": cut} | sizes | more


def sourced(function, like):
    import inspect

    return task(like, source=inspect.getsource(function), function=function.__name__)


@pytest.mark.parametrize(
    "ranks", (pytest.param(3, marks=pytest.mark.long), 4, pytest.param(8, marks=pytest.mark.long))
)
def test_every_cut_is_right_and_receives_what_the_model_says(ranks):
    reports = run([task(name) for name in ON_CPU], ranks)
    assert len(reports) == ranks
    for name, each in zip(ON_CPU, zip(*reports, strict=True), strict=True):
        assert all(report["far"] == 0 and not report["findings"] for report in each), name
        counted = sum(report["received"] for report in each) / ranks
        assert counted == pytest.approx(received(name, M, N, K, ranks), rel=1e-6), name
        assert each[0]["held"] == pytest.approx(held(name, M, N, K, ranks)), name


def hasty(a, b):
    p, rank = dist.get_world_size(), dist.get_rank()  # noqa: F821
    c = a.new_empty(len(a) * p, b.shape[1])
    here = a
    for step in range(p):
        there = torch.empty_like(a)
        if step < p - 1:
            cuts.passed_on(here, there)
        cuts.multiply(here, b, cuts.part(c, 0, (rank - step) % p, p))
        here = there
    return c


def one_buffer(a, b):
    p, rank = dist.get_world_size(), dist.get_rank()  # noqa: F821
    c = a.new_empty(len(a) * p, b.shape[1])
    here = a.clone()
    for step in range(p):
        waits = cuts.passed_on(here, here) if step < p - 1 else []
        cuts.multiply(here, b, cuts.part(c, 0, (rank - step) % p, p))
        for wait in waits:
            wait.wait()
    return c


def writes_what_is_sent(a, b):
    own, there = a.clone(), torch.empty_like(a)
    waits = cuts.passed_on(own, there)
    own.zero_()
    for wait in waits:
        wait.wait()
    return cuts.gathered(a, b)


def test_a_missing_wait_is_found_whatever_the_result():
    functions = hasty, writes_what_is_sent
    for each in run([sourced(function, "ring") for function in functions], 2):
        late, early = (report["findings"] for report in each)
        assert late == [
            "`cuts.multiply(here, b, cuts.part(c, 0, (rank - step) % p, p))` reads rows that are "
            "still being received: no wait came before"
        ]
        assert early[0].startswith("`own.zero_()` writes rows that are still being sent")


def without_the_sum(a, b):
    return cuts.columns(a, b)


def changes_its_input(a, b):
    c = cuts.gathered(a, b)
    a += 1
    return c


def too_few_rows(a, b):
    return cuts.gathered(a, b)[1:]


@pytest.mark.parametrize(
    ("function", "like", "match"),
    [
        (one_buffer, "ring", r"`waits = .*passed_on\(here, here\).*` receives into memory that it"),
        pytest.param(
            without_the_sum, "inner", r"rank (.)'s part of C is wrong in rows \d+ to \d+: by \d",
            marks=pytest.mark.long,
        ),
        pytest.param(
            changes_its_input, "gathered", "part of A was changed", marks=pytest.mark.long
        ),
        pytest.param(
            too_few_rows, "gathered", r"has \(95, 60\) of C, wanted \(96, 60\)",
            marks=pytest.mark.long,
        ),
    ],
)  # fmt: skip
def test_a_wrong_part_is_an_error_in_the_rank_s_words(function, like, match):
    with pytest.raises(RanksError, match=match):
        tried(function, M, N, K, 2, like=like)


def test_an_unknown_cut_is_refused_before_anything_starts():
    with pytest.raises(ValueError, match="there is no cut .diagonal.; on a CPU there are rows"):
        tried("diagonal", M, N, K, 2)


@pytest.mark.parametrize(
    ("start", "stop", "kind", "writes", "found"),
    [
        (0, 4, "received", False, True),
        (3, 8, "received", False, True),
        (4, 8, "received", False, False),
        (0, 4, "sent", False, False),
        (0, 1, "sent", True, True),
        (4, 5, "sent", True, False),
    ],
)
def test_memory_meets_where_bytes_do(start, stop, kind, writes, found):
    memory, pending = torch.zeros(8), Pending()
    pending.moving = [(kind, memory[:4])]
    with pending:
        part = memory[start:stop]  # a view reads nothing
        assert pending.findings == []
        part.add_(1) if writes else part.sum()
    assert bool(pending.findings) == found


@pytest.mark.gpu
@pytest.mark.alone
@pytest.mark.gpus
@pytest.mark.parametrize("dtype", ("float16", "bfloat16"))
def test_every_cut_is_right_on_gpus(dtype):
    ranks = torch.cuda.device_count()
    sizes = [(48, 64, 80), (512, 256, 384), (1000, 264, 72)]
    for m, n, k in sizes:
        scaled = {"m": m * ranks, "n": n * ranks, "k": k * ranks, "dtype": dtype, "whole": False}
        reports = run([task(name) | scaled for name in CUTS], ranks, device="cuda")
        assert all(not report["findings"] for each in reports for report in each)


@pytest.mark.gpu
@pytest.mark.alone
@pytest.mark.gpus
def test_sends_take_their_channels_and_a_trace_has_all_parts():
    ranks, mb = torch.cuda.device_count(), 2**20
    sends = {"do": "sends", "bytes": [mb, 64 * mb]}
    square = {"m": 4096, "n": 4096, "k": 4096, "dtype": "float16"}
    reports = run(
        [sends, {"do": "trace", "names": ["ring", "pulled"]} | square], ranks, device="cuda"
    )
    for sent, traced in reports:
        for size, one in sent.items():
            assert one["blocks"] == channels(int(size), ranks) and one["ms"] > 0
        for name, copies in (("ring", 0), ("pulled", 1)):  # of the rank's own rows
            kinds = [what for what, begin, end in traced[name] if 0 <= begin < end]
            assert kinds.count("product") == ranks, name
            assert kinds.count("transfer") == ranks - 1 + copies, name


SENT = {"cat": "kernel", "name": "ncclDevKernel_SendRecv(args)", "args": {"grid": [8, 2, 1]}}
PRODUCT = {"cat": "kernel", "name": "triton_persistent_kernel", "args": {"grid": [132, 1, 1]}}
COPY = {"cat": "gpu_memcpy", "name": "Memcpy PtoP (Device -> Device)", "args": {}}
BARRIER = {"cat": "kernel", "name": "barrier_kernel", "args": {"grid": [1, 1, 1]}}


def test_what_a_profiler_saw_is_told_apart(monkeypatch):
    kinds = [clock._kind(event) for event in (SENT, PRODUCT, COPY, BARRIER)]
    assert kinds == ["transfer", "product", "transfer", "other"]
    seen = [PRODUCT, SENT, COPY]
    monkeypatch.setattr(clock, "traced", lambda call: seen)
    assert clock.blocks(lambda: None) == 16
    seen.append(SENT)
    with pytest.raises(ValueError, match="saw 2 kernels of NCCL, wanted one"):
        clock.blocks(lambda: None)


def with_isend(a, b):
    dist.isend(a, 1 - dist.get_rank())  # noqa: F821
    return cuts.gathered(a, b)


def without_waiting(a, b):
    whole = a.new_empty(2 * len(a), a.shape[1])
    cuts.all_gather(whole, a, async_op=True)
    return cuts.columns(whole, b)


def as_a_list(a, b):
    both = [torch.empty_like(a) for _ in range(2)]
    dist.all_gather(both, a)  # noqa: F821
    return cuts.columns(torch.cat(both), b)


def both_at_once(a, b):
    there = torch.empty_like(a)
    send = [dist.P2POp(dist.isend, a, 1 - dist.get_rank()) for _ in range(2)]  # noqa: F821
    receive = [dist.P2POp(dist.irecv, x, 1 - dist.get_rank()) for x in (there, a.clone())]  # noqa: F821
    for wait in dist.batch_isend_irecv([*send, *receive]):  # noqa: F821
        wait.wait()
    ordered = (a, there) if dist.get_rank() == 0 else (there, a)  # noqa: F821
    return cuts.columns(torch.cat(ordered), b)


@pytest.mark.long
@pytest.mark.parametrize(
    ("function", "match"),
    [
        (with_isend, "`dist.isend.*: start transfers by `batch_isend_irecv`"),
        (without_waiting, "`cuts.all_gather.*: an asynchronous collective is not watched"),
    ],
)
def test_what_cannot_be_watched_is_refused(function, match):
    with pytest.raises(RanksError, match=match):
        tried(function, M, N, K, 2, like="gathered")


@pytest.mark.long
def test_lists_are_counted_and_one_part_may_be_sent_twice():
    tasks = [sourced(function, "gathered") for function in (as_a_list, both_at_once)]
    for each in run(tasks, 2):
        assert all(report["far"] == 0 and report["findings"] == [] for report in each)
        assert each[0]["received"] == each[0]["model"] == received("gathered", M, N, K, 2)


@pytest.mark.parametrize(
    ("cut", "options", "match"),
    [
        (lambda a, b: a, {"like": "ring"}, "a function that begins with def"),
        (hasty, {}, "`like` says which parts a function gets; on a CPU there are rows"),
        ("pulled", {}, "there is no cut 'pulled'; on a CPU there are rows"),
        ("rows", {"m": 0}, "^m must be .*got 0"),
    ],
)
def test_what_cannot_be_tried_is_refused_before_anything_starts(cut, options, match):
    sizes = {"m": M, "n": N, "k": K} | {x: y for x, y in options.items() if x != "like"}
    with pytest.raises(ValueError, match=match):
        tried(cut, **sizes, ranks=2, like=options.get("like", ""))
