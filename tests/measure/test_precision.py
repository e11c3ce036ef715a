"""exact_sums: no TF32 inside, and every switch as it was afterwards, whichever was used before."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from tiled_matmul.check import diagnose  # noqa: E402
from tiled_matmul.machine.backend import select  # noqa: E402
from tiled_matmul.measure.precision import REDUCTIONS, SWITCHES, exact_sums  # noqa: E402
from tiled_matmul.problem import Problem  # noqa: E402

MATMUL = torch.backends.cuda.matmul
NEWER = {
    "everything": torch.backends,
    "cuda": torch.backends.cudnn,
    "cuda matmul": MATMUL,
    "mkldnn": torch.backends.mkldnn,
    "mkldnn matmul": torch.backends.mkldnn.matmul,
}
# What a user may have called before, in any order; both generations of switches.
CALLS = {
    **{
        f"{name} = {value}": lambda holder=holder, value=value: setattr(
            holder, "fp32_precision", value
        )
        for name, holder in NEWER.items()
        for value in ("ieee", "tf32", "none")
    },
    **{
        f"precision {value}": lambda value=value: torch.set_float32_matmul_precision(value)
        for value in ("highest", "high", "medium")
    },
    **{
        f"{name} = {value}": lambda name=name, value=value: setattr(MATMUL, name, value)
        for name in ("allow_tf32", *REDUCTIONS)
        for value in (True, False)
    },
}


SPLIT_K = [f"{name}_split_k" for name in REDUCTIONS if hasattr(MATMUL, f"{name}_split_k")]
for name in SPLIT_K:
    of = name.removesuffix("_split_k")
    CALLS[f"{name} = False"] = lambda of=of: setattr(MATMUL, of, (False, False))


@pytest.fixture(autouse=True)
def defaults():
    yield
    reset()


def reset():
    torch.set_float32_matmul_precision("highest")
    for switches in SWITCHES:
        for switch in switches:
            torch._C._set_fp32_precision_setter(*switch, "none")
    for name in REDUCTIONS:
        setattr(MATMUL, name, True)


def state():
    """Return what every getter says or raises, now and after each switch of all was changed."""

    def asked(get):
        try:
            return get()
        except RuntimeError:
            return "they contradict each other"

    def says():
        newer = [holder.fp32_precision for holder in NEWER.values()]
        older = asked(torch.get_float32_matmul_precision), asked(lambda: MATMUL.allow_tf32)
        return (*newer, *older, *(getattr(MATMUL, name) for name in (*REDUCTIONS, *SPLIT_K)))

    found = [says()]
    before = torch.backends.fp32_precision
    for value in ("ieee", "tf32"):
        torch.backends.fp32_precision = value
        found.append(says())
    torch.backends.fp32_precision = before
    return found


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(list(CALLS)), max_size=5), st.booleans())
def test_off_within_and_restored_after_any_calls(calls, raises):
    reset()
    for call in calls:
        CALLS[call]()
    before = state()
    try:
        with exact_sums():
            assert MATMUL.fp32_precision == "ieee"
            assert MATMUL.allow_tf32 is False
            assert torch.get_float32_matmul_precision() == "highest"
            assert not any(getattr(MATMUL, name) for name in REDUCTIONS)
            if raises:
                raise KeyError
    except KeyError:
        assert raises
    assert state() == before


@pytest.mark.gpu
@pytest.mark.parametrize(
    "calls",
    [
        ["cuda matmul = tf32"],
        ["everything = tf32"],
        ["precision high", "everything = ieee"],
        ["allow_tf32 = True"],
        ["precision high", "cuda matmul = ieee", "cuda = tf32"],
    ],
    ids="; ".join,
)
def test_the_product_is_exact_whatever_was_called_before(calls):
    assert select().on_gpu
    a, b = Problem(64, 64, 64).inputs(device="cuda")
    for call in calls:
        CALLS[call]()
    with exact_sums():
        assert diagnose(a @ b, a, b).ok
    if calls[-1].endswith(("tf32", "True")) and len(calls) == 1:
        assert diagnose(a @ b, a, b).pattern == "low precision"
