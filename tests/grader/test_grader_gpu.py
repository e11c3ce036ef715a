"""The grader on a GPU: solutions pass there, and faults there are reported and contained.

The wrong answers here are right at the interpreter's sizes and wrong at one that fills a GPU.
"""

import dataclasses
import shutil
import time

import pytest

from tiled_matmul.grader import on_gpu, pool, starters
from tiled_matmul.grader.folders import exercise, exercises
from tiled_matmul.grader.judge import judge
from tiled_matmul.grader.spec import Limits

pytestmark = pytest.mark.gpu
ANSWERS = {
    name: solved
    for path in starters.solutions()
    for name, (_, solved) in starters.answers(path).items()
}
KERNELS = [one.name for one in exercises() if one.large or one.speed]
NAIVE = """
@cuda.jit
def guarded(a, b, c):
    col, row = cuda.grid(2)
    if row < c.shape[0] and col < c.shape[1]:
        acc = float32(0)
        for k in range(a.shape[1]):
            acc += a[row, k] * b[k, col]
        {before}
        c[row, col] = acc
""".replace("float32(0)", "np.float32(0)")
GUARD = dataclasses.replace(exercise("04.1"), limits=Limits(gpu_seconds=5))
sanitizer = pytest.mark.skipif(
    not shutil.which(on_gpu.SANITIZER), reason="compute-sanitizer is not here"
)


@pytest.fixture(scope="module")
def gpu():
    with on_gpu.Gpu() as there:
        yield there


# The points for speed are for a speed that is measured.
@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=pytest.mark.alone) if exercise(n).speed else n for n in KERNELS],
)
def test_the_solution_has_all_points(name, gpu):
    verdict = judge(exercise(name), ANSWERS[name], gpu=gpu, confined=pool.sandbox_works())
    print(f"{name}: {verdict.evidence.get('speed', '')}")
    assert (verdict.status, verdict.points) == ("PASS", exercise(name).points_on(gpu.cc)), (
        verdict.message
    )


def large(statement):
    return NAIVE.format(before=f"if a.shape[0] > 500:\n            {statement}")


def test_27_an_illegal_address_costs_only_its_answer(gpu):
    verdict = judge(GUARD, large("c[row + 1_000_000_000, col] = acc"), gpu=gpu)
    assert (verdict.status, verdict.points) == ("GPU_FAULT", 0), verdict.message
    assert "CUDA_ERROR_ILLEGAL_ADDRESS" in verdict.message
    print(verdict.message)
    if shutil.which(on_gpu.SANITIZER):
        assert "Invalid __global__ write of size 4 bytes in line 10 (`c[row" in verdict.message
    assert judge(GUARD, ANSWERS["04.1"], gpu=gpu).status == "PASS"


def test_27_a_fault_while_it_is_timed(gpu):
    timed = dataclasses.replace(GUARD, speed=exercise("07.1").speed)
    late = NAIVE.format(before="if a.shape[0] > 1000:\n            c[row + 1_000_000_000, col] = 1")
    verdict = judge(timed, late, gpu=gpu)
    assert (verdict.status, verdict.points) == ("GPU_FAULT", 0), verdict.message
    assert judge(GUARD, ANSWERS["04.1"], gpu=gpu).status == "PASS"


@pytest.mark.alone
def test_21_28_a_kernel_without_an_end_is_ended(gpu):
    began = time.monotonic()
    verdict = judge(GUARD, large("while True:\n                pass"), gpu=gpu)
    assert (verdict.status, verdict.points) == ("TIMEOUT", 0), verdict.message
    assert time.monotonic() - began < 40
    assert judge(GUARD, ANSWERS["04.1"], gpu=gpu).status == "PASS"


@pytest.mark.alone
def test_28_a_deadlock_is_ended(gpu):
    """Thread 0 waits for a value that the others store after a barrier that it never reaches."""
    source = NAIVE.replace(
        "    col, row",
        """    flag = cuda.shared.array(1, np.int32)
    if a.shape[0] > 500:
        flag[0] = 0
        cuda.syncthreads()
        if cuda.threadIdx.x == 0 and cuda.threadIdx.y == 0:
            while cuda.atomic.add(flag, 0, 0) == 0:
                pass
        cuda.syncthreads()
        flag[0] = 1
    col, row""",
        1,
    ).format(before="pass")
    verdict = judge(GUARD, source, gpu=gpu, gated=False)  # the gate refuses atomics
    assert (verdict.status, verdict.points) == ("TIMEOUT", 0), verdict.message
    assert judge(GUARD, ANSWERS["04.1"], gpu=gpu).status == "PASS"


def test_wrong_at_a_size_that_no_interpreter_runs(gpu):
    verdict = judge(GUARD, large("acc += 1"), gpu=gpu)
    assert (verdict.status, verdict.points) == ("WRONG", 0), verdict.message


def test_17_inputs_changed_there(gpu):
    verdict = judge(GUARD, large("a[row, 0] = 0"), gpu=gpu)
    assert (verdict.status, verdict.diagnosis) == ("WRONG", "inputs"), verdict.message


def test_a_barrier_left_out_where_only_a_gpu_runs(gpu):
    source = ANSWERS["05.3"]
    assert source.count("cuda.syncthreads()") == 2
    raced = source.replace(
        "cuda.syncthreads()", "if a.shape[0] < 500:\n            cuda.syncthreads()"
    )
    verdict = judge(exercise("05.3"), raced, gpu=gpu)
    assert (verdict.status, verdict.points) == ("WRONG", 0), verdict.message
    assert "On the GPU" in verdict.message


@sanitizer
@pytest.mark.parametrize("name", ["05.1", "08.2", "10.1"])
def test_compute_sanitizer_finds_nothing_in_a_solution(name, gpu):
    verdict = judge(exercise(name), ANSWERS[name], gpu=gpu, sanitize=True)
    assert verdict.status == "PASS", verdict.message


@sanitizer
def test_compute_sanitizer_finds_a_read_past_the_end(gpu):
    """The address lies inside the driver's allocation, so no fault occurs and C is right."""
    verdict = judge(GUARD, large("acc += 0 * b[a.shape[1], col]"), gpu=gpu, sanitize=True)
    assert (verdict.status, verdict.points) == ("GPU_FAULT", 0), verdict.message
    assert "Invalid __global__ read of size 4 bytes in line 10 (`acc +=" in verdict.message


LUCKY = """        cuda.syncthreads()
    if a.shape[0] > 500:
        left[y, x] = np.float32(0)
        total += np.float32(0) * left[x, y]
"""


@sanitizer
def test_29_racecheck_finds_a_race_with_a_lucky_value_each_time(gpu):
    """Whichever thread comes first, a finite number is multiplied by 0: the product is right."""
    head, tail = ANSWERS["05.3"].rsplit("        cuda.syncthreads()\n", 1)
    raced = head + LUCKY + tail
    line = raced.splitlines().index("        left[y, x] = np.float32(0)") + 1
    assert judge(exercise("05.3"), raced, gpu=gpu).status == "PASS"
    for again in range(3):
        verdict = judge(exercise("05.3"), raced, seed=again, gpu=gpu, sanitize=True)
        assert (verdict.status, verdict.points, verdict.diagnosis) == ("RACE", 0, "race"), (
            verdict.message
        )
        place = f"line {line} (`left[y, x] = np.float32(0)`)"
        assert f"Race reported between Write access in {place}" in verdict.message


WASTE = """    zero = c.dtype.type(0)
    for again in range(64 if a.shape[0] > 1000 else 0):
        for k in range(a.shape[1]):
            zero += c.dtype.type(0) * a[again, k]
"""


def slowed():
    """Return the answer to 07.1 with extra work at the timed size, which changes no result."""
    source = ANSWERS["07.1"]
    assert source.count("    zero = c.dtype.type(0)\n") == 1
    return source.replace("    zero = c.dtype.type(0)\n", WASTE)


PATCHES = """
import time as clock
import numba.cuda as real
import torch

clock.perf_counter = clock.monotonic = lambda: 0.0
torch.cuda.Event.elapsed_time = lambda self, other: 1e-9
torch.cuda.synchronize = lambda *anything: None
real.event_elapsed_time = lambda start, end: 1e-9
real.synchronize = lambda: None
"""


@pytest.mark.alone
def test_30_a_slow_answer_is_slow_even_if_it_patches_the_clock(gpu):
    fair = judge(exercise("07.1"), ANSWERS["07.1"], gpu=gpu)
    source = slowed()
    plain = judge(exercise("07.1"), source, gpu=gpu)
    patched = judge(exercise("07.1"), PATCHES + source, gpu=gpu, gated=False)
    print(fair.evidence["speed"], plain.message, patched.message, sep="\n")
    for verdict in (plain, patched):
        assert (verdict.status, verdict.diagnosis) == ("WRONG", "slow"), verdict.message
        assert (verdict.points, verdict.max_points) == (4, 5)


def test_30_an_answer_that_skips_work_when_it_is_timed_is_wrong(gpu):
    """Before a timed call C is full of NaN, which an answer can see."""
    lazy = "if c[row, col] != c[row, col]:\n            return"
    one = dataclasses.replace(GUARD, speed=exercise("07.1").speed)
    verdict = judge(one, large(lazy), gpu=gpu)
    assert (verdict.status, verdict.points) == ("WRONG", 0), verdict.message
    assert verdict.diagnosis != "slow"


SIDE = """
class Lazy:
    '''Looks like a kernel, but would launch when and on which stream it likes.'''

    def __init__(self, kernel):
        self.kernel, self.py_func = kernel, kernel.py_func
        self.targetoptions = getattr(kernel, "targetoptions", {})

    def __getitem__(self, launch):
        return lambda *arguments: None

    def __getattr__(self, name):
        return getattr(self.kernel, name)


guarded = Lazy(guarded)
"""


def test_30_side_streams_and_lazy_launches_have_nothing_to_launch(gpu):
    """An answer's Python never runs beside the GPU: only its compiled code is timed."""
    one = dataclasses.replace(GUARD, speed=exercise("07.1").speed)
    verdict = judge(one, NAIVE.format(before="pass") + SIDE, gpu=gpu, gated=False)
    print(verdict.status, verdict.message, verdict.evidence.get("speed"))
    # It fails in the interpreter already, or it is launched and timed like any other.
    assert verdict.status in ("WRONG", "CRASH") or verdict.evidence["speed"]["timed"] >= 10


FORGED = """
import tiled_matmul.microscope.compiled.cuda as own

own.cubin = lambda *anything, **named: b"\\x7fELF" + bytes(1000)
"""


def test_26_forged_machine_code_is_refused(gpu):
    verdict = judge(GUARD, FORGED + NAIVE.format(before="pass"), gpu=gpu, gated=False)
    assert (verdict.status, verdict.points) == ("WRONG", 0) and "be launched" in verdict.message
    assert judge(GUARD, ANSWERS["04.1"], gpu=gpu).status == "PASS"


@pytest.mark.alone
def test_the_command_line_and_the_notebook(tmp_path, capsys):
    from tiled_matmul.__main__ import main
    from tiled_matmul.grader import check

    path = next(p for p in starters.solutions() if p.name.startswith("07"))
    report = tmp_path / "report.json"
    assert main(["grade", "--gpu", "--json", str(report), str(path)]) == 0
    printed = capsys.readouterr().out
    assert "of the speed of cuda_coalesced" in printed and '"ratio"' in report.read_text()
    check("10.1", ANSWERS["10.1"], gpu=True)
    assert "of the speed of cublas" in capsys.readouterr().out


@pytest.mark.skipif(not pool.sandbox_works(), reason="bubblewrap makes no sandbox here")
def test_a_class_is_graded_in_the_sandbox_and_on_the_gpu(tmp_path):
    """Ann solved it, Bob's kernel faults on the GPU, Cleo's is wrong there: Ann keeps her marks."""
    import json

    from tiled_matmul.grader import teacher

    path = next(p for p in starters.solutions() if p.name.startswith("04"))
    guards = {
        "ann": ANSWERS["04.1"],
        "bob": large("c[row + 1_000_000_000, col] = acc"),
        "cleo": large("c[row, col] = 1\n            return"),
    }
    for name, source in guards.items():
        data = json.loads(path.read_text(encoding="utf-8"))
        for cell in data["cells"]:
            if cell["id"] in ("exercise-04-1", "exercise-04-2"):
                cell["source"] = source if cell["id"].endswith("1") else ANSWERS["04.2"]
        (tmp_path / f"{name}.ipynb").write_text(json.dumps(data), encoding="utf-8")
    reports = teacher.grade(tmp_path, jobs=4, gpu=True)
    statuses = [[one["status"] for one in report["exercises"]] for report in reports]
    assert statuses == [["PASS", "PASS"], ["GPU_FAULT", "PASS"], ["WRONG", "PASS"]], reports
