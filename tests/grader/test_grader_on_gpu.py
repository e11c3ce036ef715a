"""grader/on_gpu.py without a GPU: the verdict on an answer, whatever the GPU's process does.

A worker compiles the answer; in place of the GPU's process stands one that multiplies with NumPy.
"""

import dataclasses
import math
import re
import sys
from contextlib import ExitStack, nullcontext
from pathlib import Path

import pytest

from tiled_matmul.grader import compare, on_gpu, pool, practice, starters
from tiled_matmul.grader.folders import exercise, exercises
from tiled_matmul.grader.judge import judge
from tiled_matmul.grader.spec import Case, Limits
from tiled_matmul.machine.device import Peak

EXAMPLE = Path(__file__).parents[1] / "launcher_example.py"
ANSWERS = {
    name: solved
    for path in starters.solutions()
    for name, (_, solved) in starters.answers(path).items()
}
FIRST = exercise("10.1")
(TEN,) = [path for path in starters.solutions() if path.name.startswith("10")]
STARTER = starters.answers(TEN)["10.1"][0]
SMALL = dataclasses.replace(
    FIRST,
    cases=FIRST.cases[:1],
    large=(Case(40, 37, 50, "float16", draw="normal"),),
    speed=dataclasses.replace(FIRST.speed, case=Case(70, 50, 90, "float16", draw="normal")),
)


@pytest.fixture(scope="module")
def kept():
    """Running workers by kind and environment."""
    with ExitStack() as stack:
        started = {}

        def worker(kind, environment):
            own = environment.items() - pool.WITHOUT_GPU.items()  # which one for Triton has anyway
            key = "triton" if kind == "triton" else "cuda", *sorted(own)
            if key not in started:
                new = START(key[0], Limits(), False, None, environment)
                started[key] = stack.enter_context(new)
            return started[key]

        yield worker


@pytest.fixture
def shared(kept, monkeypatch):
    """Let right answers share their processes and the compiler's cache; the GPU's is always new."""

    def start(kind, limits, confined, command=None, environment=None):
        if command is not None:
            return START(kind, limits, confined, command, environment)
        assert not confined
        return nullcontext(kept(kind, environment or {}))

    monkeypatch.setattr(pool, "Worker", start)


START = pool.Worker
sharing = pytest.mark.usefixtures("shared")


def gpu(mode, cc=(9, 0)):
    return on_gpu.Gpu([sys.executable, str(EXAMPLE), mode], cc=cc)


def judged(mode, answer=SMALL, source=ANSWERS["10.1"], cc=(9, 0), **options):
    with gpu(mode, cc) as there:
        verdict = judge(answer, source, gpu=there, **options)
    return verdict, there


@sharing
def test_right_and_fast_has_all_points_and_says_how_fast():
    verdict, there = judged("fair")
    assert (verdict.status, verdict.points, verdict.max_points) == ("PASS", 5, 5), verdict.message
    assert verdict.evidence["speed"] == {"against": "cublas", "ratio": 0.8, "timed": 3}
    assert practice.on_the_gpu(verdict.evidence) == ", on the GPU at 0.80 of the speed of cublas"
    assert there.starts == 1 and there.launcher is None


def test_in_the_sandbox_as_well():
    if not pool.sandbox_works():
        pytest.skip("bubblewrap makes no sandbox here")
    verdict, _ = judged("fair", confined=True)
    assert (verdict.status, verdict.points) == ("PASS", 5), verdict.message


@sharing
def test_right_and_slow_keeps_the_points_for_being_right():
    verdict, _ = judged("slow")
    assert (verdict.status, verdict.points, verdict.max_points) == ("WRONG", 4, 5)
    assert verdict.diagnosis == "slow" and verdict.hint == 3
    assert "0.00 of the speed of cublas; 0.3 is asked for" in verdict.message


@sharing
def test_speed_is_asked_where_it_was_measured():
    verdict, _ = judged("slow", cc=(8, 0))
    assert (verdict.status, verdict.points, verdict.max_points) == ("PASS", 4, 4), verdict.message
    assert "speed" not in verdict.evidence


@sharing
def test_a_gpu_that_lacks_what_an_answer_needs_is_not_asked():
    old = dataclasses.replace(SMALL, since=(8, 0))
    verdict, there = judged("fault", old, cc=(7, 5))
    assert (verdict.status, verdict.points, verdict.max_points) == ("PASS", 4, 4), verdict.message
    assert there.starts == 0


@sharing
def test_30_an_impossible_time_costs_no_marks():
    verdict, _ = judged("impossible")
    assert (verdict.status, verdict.points, verdict.hint) == ("INFRA", 0, 0)
    assert "is impossible" in verdict.message


@sharing
def test_30_every_timed_output_is_compared():
    verdict, _ = judged("unchecked")
    assert (verdict.status, verdict.points) == ("WRONG", 0) and verdict.diagnosis == "zero"
    assert verdict.message.startswith("On the GPU, A 70×90 times B 90×50: C ")


@sharing
@pytest.mark.parametrize(
    ("mode", "status", "words"),
    [
        ("fault", "GPU_FAULT", "CUDA_ERROR_ILLEGAL_ADDRESS"),
        ("dies", "GPU_FAULT", "the process ended with status 3"),
        ("silent", "TIMEOUT", "did not finish within 1 s"),
        ("refused", "WRONG", "cannot be launched"),
        ("absent", "INFRA", "the GPU does not answer: .*nobody is there"),
    ],
)
def test_what_befalls_the_gpus_process(mode, status, words):
    limited = dataclasses.replace(SMALL, limits=Limits(gpu_seconds=1))
    verdict, there = judged(mode, limited)
    assert (verdict.status, verdict.points, verdict.max_points) == (status, 0, 5)
    assert re.search(words, verdict.message), verdict.message
    assert there.launcher is None


@sharing
def test_a_fault_costs_only_the_answer_that_made_it():
    """The next one has a fresh process; a GPU that is gone is tried once and no more."""
    with gpu("fault") as there:
        for expected in (1, 2):
            assert judge(SMALL, ANSWERS["10.1"], gpu=there).status == "GPU_FAULT"
            assert there.starts == expected
    with gpu("absent") as there:
        for _ in range(2):
            assert judge(SMALL, ANSWERS["10.1"], gpu=there).status == "INFRA"
        assert there.starts == 0


@sharing
def test_what_fails_without_a_gpu_does_not_come_to_it():
    with gpu("absent") as there:
        verdict = judge(SMALL, STARTER, gpu=there)
    assert (verdict.status, verdict.points, verdict.max_points) == ("WRONG", 0, 5)


def test_plain_python_has_no_speed():
    with gpu("absent") as there:
        verdict = judge(exercise("11.1"), ANSWERS["11.1"], gpu=there)
    assert (verdict.status, verdict.points, verdict.max_points) == ("PASS", 3, 3)


PATCHED = """
class Built:
    class metadata:
        num_warps, shared, global_scratch_size = {numbers}
    asm = {{"cubin": {code}}}


import tiled_matmul.microscope.compiled.triton as own
own.build = lambda *arguments: (Built, {{name: "i32" for name in "abc"}})
"""


CASE = SMALL.cases[0]
RIGHT = {"passed": [0, 1, 2], "warps": 4, "shared": 0, "scratch": 0}


class Reply:
    """A worker that replies these numbers of a kernel, and this code."""

    def __init__(self, built, code=(b"x",)):
        self.reply = {"findings": [], "counts": {}, "built": built}, list(code)

    def ask(self, header, blobs, seconds, most):
        return self.reply


def test_26_a_reply_of_the_right_form_is_taken():
    built = on_gpu._built(SMALL, CASE, Reply(RIGHT), (9, 0))
    assert built == on_gpu.Built(b"x", (0, 1, 2), 4, 0, 0)


@pytest.mark.parametrize(
    ("built", "code"),
    [
        (RIGHT | {"warps": -1}, [b"x"]),
        (RIGHT | {"shared": 10**9}, [b"x"]),
        (RIGHT | {"warps": "4"}, [b"x"]),
        (RIGHT | {"warps": 0}, [b"x"]),
        (RIGHT | {"passed": [2, 1]}, [b"x"]),
        (RIGHT | {"passed": [31]}, [b"x"]),
        (RIGHT | {"more": 1}, [b"x"]),
        (RIGHT, []),
        (None, [b"x"]),
    ],
)
def test_26_a_worker_that_lies_about_its_kernel_is_not_believed(built, code):
    with pytest.raises(compare.Stop) as stop:
        on_gpu._built(SMALL, CASE, Reply(built, code), (9, 0))
    assert stop.value.status == "CRASH"


@sharing
def test_26_what_does_not_compile_is_wrong_and_a_patched_compiler_is_not_believed():
    fails = PATCHED.format(numbers="4, 0, 0", code="b''").replace("(Built, {", "(1 / 0, {")
    patches = PATCHED.format(numbers="4, 0, 0", code="b'x' * 2**25")
    with START("triton", Limits(), False) as own:
        how = {"gated": False, "worker": own}
        verdict, _ = judged("fair", source=fails + ANSWERS["10.1"], **how)
        assert (verdict.status, verdict.points) == ("COMPILE", 0)
        assert verdict.message.startswith("Compiled for a GPU, A 20×40"), verdict.message
        assert "ZeroDivisionError" in verdict.message
        verdict, there = judged("fair", source=patches + ANSWERS["10.1"], **how)
        assert (verdict.status, verdict.points) == ("CRASH", 0), verdict.message
        assert there.starts == 0


def test_a_machine_without_a_gpu_says_so(tmp_path, capsys, monkeypatch):
    from tiled_matmul.__main__ import main
    from tiled_matmul.machine.backend import probe_gpu

    if probe_gpu()[0] is not None:
        pytest.skip("there is a GPU here")
    monkeypatch.setattr(pool, "sandbox_works", lambda: True)
    for arguments in (["exercises/05_shared_memory.ipynb"], ["--teacher", str(tmp_path)]):
        assert main(["grade", "--gpu", *arguments]) == 2
        assert "a GPU was asked for, but" in capsys.readouterr().err
    with pytest.raises(ValueError, match="a GPU was asked for, but"):
        practice.check("05.1", ANSWERS["05.1"], gpu=True)


def test_a_process_of_an_answer_sees_no_gpu():
    with pool.Worker("loops", Limits(), False, None, on_gpu.HIDDEN) as worker:
        variables = Path(f"/proc/{worker.process.pid}/environ").read_bytes().split(b"\0")
    assert b"CUDA_VISIBLE_DEVICES=" in variables


@pytest.mark.parametrize(("dtype", "ms"), [("float16", 137.4 / 989), ("float32", 137.4 / 67)])
def test_the_shortest_time_is_the_rooflines(dtype, ms):
    peak = Peak("a GPU", 67, 989, 4800, 60, 132, "for a test")
    assert on_gpu.least_ms(Case(4096, 4096, 4096, dtype), peak) == pytest.approx(ms, rel=1e-3)
    thin = on_gpu.least_ms(Case(4096, 4096, 1, dtype), peak)
    size = {"float16": 2, "float32": 4}[dtype]
    assert thin == pytest.approx(size * (4096**2 + 2 * 4096) / 4800e6, rel=1e-3)


def test_every_kernel_is_tried_on_a_gpu_at_a_size_that_fills_it():
    for one in exercises():
        assert bool(one.large) == (one.kind in ("cuda", "triton")), one.name
        for case in one.large:
            assert min(case.m, case.n, case.k) > 200
            (grid, block), limits = one.launch(case), (65535, 1024)
            assert max((*grid[1:], 1)) <= limits[0]
            assert one.kind != "cuda" or math.prod(block) <= limits[1]


NUMBAS = "answer::repaired[abi:v1,cw51cXTLSU](Array<float, (int)2, C>, Array<float, (int)2, C>)"
RACE = f"""========= COMPUTE-SANITIZER
========= Error: Race reported between Write access at {NUMBAS}+0xab0 in <answer>:21
=========     and Read access at {NUMBAS}+0xae0 in /some/where/<answer>:22 [792000 hazards]
=========
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
"""
READ = """========= COMPUTE-SANITIZER
========= Invalid __global__ read of size 4 bytes
=========     at product+0x4d0{where}
=========     by thread (7,0,0) in block (1,2,0)
=========     Access to 0x7fe1f2872b04 is out of bounds
=========     and is 1,409 bytes after the nearest allocation at 0x7fe1f2800000 of 468,356 bytes
=========
========= ERROR SUMMARY: 3 errors
========= ERROR SUMMARY: 2 errors were not printed. Use --print-limit option to adjust
"""
THREAD = "by thread (7,0,0) in block (1,2,0)"


@pytest.mark.parametrize(
    ("log", "reports"),
    [
        ("========= ERROR SUMMARY: 0 errors\n", []),
        ("Invalid text of a kernel's own\n========= ERROR SUMMARY: 0 errors\n", []),
        ("========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)\n", []),
        ("========= Something new\n========= ERROR SUMMARY: 2 errors\n", ["2 errors"]),
        (READ.format(where=""), [f"Invalid __global__ read of size 4 bytes {THREAD}"]),
        (
            READ.format(where=" in <answer>:25"),
            [f"Invalid __global__ read of size 4 bytes in line 25 {THREAD}"],
        ),
        (
            READ.format(where=" in tile_view.py:58"),
            [f"Invalid __global__ read of size 4 bytes in tile_view.py:58 {THREAD}"],
        ),
        (
            RACE,
            [
                "Race reported between Write access in line 21 and Read access in line 22 "
                "[792000 hazards]"
            ],
        ),
    ],
)
def test_a_sanitizers_log_is_read(log, reports):
    assert on_gpu.findings(log) == reports


def test_a_sanitizers_log_without_its_end_costs_no_marks():
    with pytest.raises(on_gpu.NoGpu, match="did not finish: killed"):
        on_gpu.findings("killed")


def test_a_machine_that_compiles_nothing_costs_no_marks_without_a_gpu_either(monkeypatch):
    monkeypatch.setattr("tiled_matmul.grader.judge.INFRA_TRIES", 1)
    monkeypatch.setattr(pool, "_NURSERIES", {})
    monkeypatch.setitem(pool.WITHOUT_GPU, "TRITON_CACHE_MANAGER", "nowhere:Nothing")
    with START("triton", Limits(), False) as broken:
        monkeypatch.setattr(pool, "Worker", lambda *_: nullcontext(broken))
        verdict = judge(SMALL, ANSWERS["10.1"])
    assert (verdict.status, verdict.points) == ("INFRA", 0), verdict.message
    assert "no kernel can be compiled here" in verdict.message


@sharing
def test_a_machine_that_compiles_nothing_costs_no_marks(monkeypatch):
    monkeypatch.setattr(on_gpu, "HIDDEN", on_gpu.HIDDEN | {"TRITON_CACHE_DIR": "/proc/nowhere"})
    verdict, _ = judged("fair")
    assert (verdict.status, verdict.points) == ("INFRA", 0), verdict.message
    assert "no kernel can be compiled here" in verdict.message
