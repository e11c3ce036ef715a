import contextlib
import os
import signal
import subprocess
import sys

import pytest

from tiled_matmul import ROOT
from tiled_matmul.__main__ import main
from tiled_matmul.machine import backend
from tiled_matmul.measure import bench, results

QUICK = ["--shapes", "16x16x16", "--budget", "0.05", "--threads", "1"]


def run(capsys, *arguments):
    """Return (exit status, standard output, standard error) of one command."""
    try:
        status = main(list(arguments))
    except SystemExit as stop:
        status = stop.code
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_bench_prints_a_table_and_merges_its_records_into_a_file(capsys, tmp_path):
    path = tmp_path / "cpu.json"
    rungs = "njit_ikj,loops_python"
    status, out, _ = run(capsys, "bench", "--rungs", rungs, "--json", str(path), *QUICK)
    assert status == 0
    lines = out.splitlines()
    columns = "shape dtype rung time (ms) spread TFLOP/s against the baseline"
    assert lines[0].split() == columns.split()
    assert {line.split()[1] for line in lines[1:]} == {"float32"}
    assert [line.split()[2] for line in lines[1:]] == ["numpy", "njit_ikj", "loops_python"]
    records = results.load(path)
    assert [record.rung for record in records] == ["numpy", "njit_ikj", "loops_python"]
    assert f"{records[2].ratio:.3g} × numpy" in lines[3]
    assert run(capsys, "bench", "--rungs", "njit_kij", "--json", str(path), *QUICK)[0] == 0
    merged = ["numpy", "njit_ikj", "loops_python", "njit_kij"]
    assert [record.rung for record in results.load(path)] == merged


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--rungs", "nope"], "tiled_matmul bench: unknown rung 'nope'; the ladder has loops_py"),
        (["--rungs", "njit_ikj,"], "unknown rung ''"),
        (["--rungs", "njit_ikj,njit_ikj"], "named twice: njit_ikj"),
        (["--shapes", "16x16"], "a shape is written MxNxK, such as 1024x512x256; got '16x16'"),
        (["--shapes", "0x4x4"], "M must be a positive integer, got 0"),
        (["--shapes", "4x4x4,"], "got ''"),
        (["--shapes", ""], "got ''"),
        (["--shapes", "4x4x" + "9" * 400], "K must be at most 2^63 - 1"),
        (["--dtype", "float31"], "dtype must be one of"),
        (["--json", "absent/folder/a.json"], "cannot be written: No such file"),
        (["--json", "."], "is a folder"),
        (["--json", ""], "is a folder"),
        (["--budget", "0"], "--budget must be positive seconds, got 0"),
        (["--budget", "nan"], "--budget must be positive seconds, got nan"),
        (["--budget", "soon"], "invalid float value: 'soon'"),
        (["--threads", "0"], "threads must be from 1 to"),
        (["--frobnicate"], "unrecognized arguments: --frobnicate"),
    ],
)
def test_a_bad_request_is_one_line_before_anything_is_timed(
    capsys, monkeypatch, arguments, message
):
    def no_clock(*arguments, **options):
        raise AssertionError("something was timed")

    monkeypatch.setattr(bench, "time_interleaved", no_clock)
    monkeypatch.setattr(bench, "estimate_s", no_clock)
    defaults = {"--rungs": "njit_ikj", "--shapes": "8x8x8"}
    given = [x for name in defaults if name not in arguments for x in (name, defaults[name])]
    status, out, err = run(capsys, "bench", *given, *arguments)
    assert status == 2
    assert out == ""
    assert message in err
    assert err.count("\n") == 1 and err.endswith("\n")


def test_an_unreadable_results_file_is_refused_and_kept(capsys, tmp_path):
    path = tmp_path / "a.json"
    path.write_text('[{"rung": "x"}]')
    status, out, err = run(capsys, "bench", "--rungs", "njit_ikj", "--json", str(path), *QUICK)
    assert (status, out) == (2, "")
    assert f"{path} must hold an object with format, suite, runs, records; it holds a list" in err
    assert path.read_text() == '[{"rung": "x"}]'


def test_gpu_rungs_in_the_simulators_are_refused(capsys):
    if backend.select().on_gpu:
        assert run(capsys, "bench", "--rungs", "cuda_naive", *QUICK)[0] == 0
        return
    status, out, err = run(capsys, "bench", "--rungs", "cuda_naive", *QUICK)
    assert (status, out) == (2, "")
    assert "the simulators have no clock" in err


def test_what_takes_too_long_is_left_out_with_an_estimate(capsys, monkeypatch):
    monkeypatch.setattr(bench, "LONG_PROBE_S", 0.02)
    arguments = ["--shapes", "1024x1024x64", "--budget", "0.05"]
    status, out, _ = run(capsys, "bench", "--rungs", "loops_python,njit_ikj", *arguments)
    assert status == 0
    (line,) = [line for line in out.splitlines() if "loops_python" in line]
    assert "not timed: a run takes about" in line and "--force" in line
    assert "× numpy" in out
    status, _, err = run(capsys, "bench", "--rungs", "loops_python", *arguments)
    assert status == 2 and "nothing was timed" in err and err.count("\n") == 1


def test_a_rung_that_refuses_is_left_out_with_its_reason(capsys, monkeypatch):
    from tiled_matmul.ladder import loop_orders

    def fussy(a, b, out=None, order=""):
        if order == "kij" and a.shape[0] % 4:
            raise ValueError("M must be a multiple of 4")
        return a @ b if out is None else bench._numpy_matmul(a, b, out)

    monkeypatch.setattr(loop_orders, "matmul", fussy)
    arguments = ["--shapes", "18x16x16", "--budget", "0.05", "--threads", "1"]
    status, out, _ = run(capsys, "bench", "--rungs", "njit_ikj,njit_kij", *arguments)
    assert status == 0
    (line,) = [line for line in out.splitlines() if "njit_kij" in line]
    assert line.endswith("not timed: it refuses: M must be a multiple of 4")
    monkeypatch.setattr(bench, "estimate_s", lambda rung, problem: 0.0)
    status, out, err = run(capsys, "bench", "--rungs", "njit_kij", *arguments)
    assert status == 2 and "it refuses: M must be" in out and "nothing was timed" in err


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int64"])
@pytest.mark.parametrize("force", [[], ["--force"]])
def test_a_dtype_that_a_rung_does_not_take_is_told(capsys, dtype, force):
    status, out, err = run(capsys, "bench", "--rungs", "njit_ikj", "--dtype", dtype, *force, *QUICK)
    assert status == 2 and "nothing was timed" in err
    assert out.splitlines()[1].split()[:3] == ["16x16x16", dtype, "njit_ikj"]
    assert out.splitlines()[1].endswith("it refuses: its dtypes are float32, float64")


def test_rungs_are_timed_in_their_own_dtype_and_each_dtype_against_its_baseline(
    capsys, monkeypatch
):
    asked = []

    def note(rungs, problem, **options):
        asked.append(([r.name for r in rungs], problem.shape_text, problem.dtype))
        return []

    import numba.cuda  # noqa: F401  its first import is on the chosen back end, not on this one

    gpu = backend.Backend("gpu", "for a test", backend.Gpu("a GPU", (9, 0), "13.0"))
    monkeypatch.setattr(backend, "select", lambda: gpu)
    monkeypatch.setattr(bench, "bench", note)
    names = "triton_swizzled,cuda_naive,njit_ikj,triton_block_pointers"
    arguments = ["--rungs", names, "--shapes", "8x8x8", "--force", "--no-twins"]
    assert run(capsys, "bench", *arguments)[0] == 2  # nothing was timed
    assert asked == [
        (["njit_ikj"], "8x8x8", "float32"),
        (["triton_swizzled", "triton_block_pointers"], "8x8x8", "float16"),
        (["cuda_naive"], "8x8x8", "float32"),
    ]
    asked.clear()
    run(capsys, "bench", *arguments, "--dtype", "bfloat16")
    assert asked == [(["triton_swizzled", "triton_block_pointers"], "8x8x8", "bfloat16")]
    asked.clear()
    run(capsys, "bench", "--rungs", names, "--force")
    shapes = {dtype: [s for _, s, d in asked if d == dtype] for dtype in ("float16", "float32")}
    assert "16x4096x4096" in shapes["float16"] and "16x4096x4096" not in shapes["float32"]
    assert len(shapes["float16"]) == 14


def test_a_problem_that_does_not_fit_into_memory_is_left_out(capsys, monkeypatch):
    def full(rungs, problem, **options):
        if problem.m == 32:
            raise MemoryError
        return whole(rungs, problem, **options)

    whole = bench.bench
    monkeypatch.setattr(bench, "bench", full)
    arguments = ["--shapes", "32x16x16,16x16x16", "--budget", "0.05", "--threads", "1"]
    status, out, _ = run(capsys, "bench", "--rungs", "njit_ikj", *arguments)
    assert status == 0 and "× numpy" in out
    assert "not timed: there is too little memory" in out.splitlines()[1]


def test_a_wrong_rung_is_one_line(capsys, monkeypatch, tmp_path):
    from tiled_matmul.ladder import loop_orders

    monkeypatch.setattr(loop_orders, "matmul", lambda a, b, out=None, order="": out)
    path = tmp_path / "a.json"
    monkeypatch.setattr(bench, "estimate_s", lambda rung, problem: 0.0)
    status, _, err = run(capsys, "bench", "--rungs", "njit_ikj", "--json", str(path), *QUICK)
    assert status == 2
    assert "njit_ikj is not timed, it is wrong" in err and "never written" in err.lower()
    assert err.count("\n") == 1
    assert not path.exists()


def test_a_programmer_s_error_keeps_its_traceback(monkeypatch):
    def broken(*arguments, **options):
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(bench, "bench", broken)
    with pytest.raises(ZeroDivisionError, match="a bug"):
        main(["bench", "--rungs", "njit_ikj", *QUICK])


@pytest.mark.parametrize("arguments", [[], ["nope"], ["doctor", "extra"], ["notebooks"]])
def test_a_command_line_that_is_none_is_one_line(capsys, arguments):
    status, out, err = run(capsys, *arguments)
    assert (status, out) == (2, "")
    assert err.count("\n") == 1


def test_help_works(capsys):
    status, out, _ = run(capsys, "--help")
    assert status == 0
    for command in ("doctor", "bench", "notebooks"):
        assert command in out


def test_interrupting_the_module_keeps_what_it_has_measured(tmp_path):
    path = tmp_path / "a.json"
    process = subprocess.Popen(
        [sys.executable, "-m", "tiled_matmul", "bench", "--rungs", "njit_ikj"]
        + ["--shapes", "32x32x32,1024x1024x1024", "--budget", "2", "--json", str(path)],
        env=os.environ | {"PYTHONPATH": str(ROOT / "src"), "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A test run in the background inherits that Ctrl-C is ignored; a person's shell does not.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    for line in process.stdout:
        if "njit_ikj" in line:  # the first shape is measured; the second takes seconds
            break
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err == "tiled_matmul bench: interrupted\n"
    assert out == ""
    # The file is written whole after the table's rows, or not at all.
    assert os.listdir(tmp_path) in ([], ["a.json"])
    if path.exists():
        assert {record.m for record in results.load(path)} == {32}


@contextlib.contextmanager
def on_sigint(handler):
    """What a test run inherits is not known: one in the background ignores Ctrl-C."""
    before = signal.signal(signal.SIGINT, handler)
    try:
        yield
        assert signal.getsignal(signal.SIGINT) is handler
    finally:
        signal.signal(signal.SIGINT, before)


def test_an_interrupt_that_is_lost_on_the_way_ends_the_run_at_the_next_step(
    capsys, monkeypatch, tmp_path
):
    path = tmp_path / "a.json"

    def compiles(rungs, problem, *, on_progress, **options):
        with contextlib.suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
            pytest.fail("it raises at once")
        on_progress("timing", 0.5)
        pytest.fail("it went on")

    monkeypatch.setattr(bench, "bench", compiles)
    with on_sigint(signal.default_int_handler):
        status, _, err = run(capsys, "bench", "--rungs", "njit_ikj", "--json", str(path), *QUICK)
    assert (status, err) == (130, "tiled_matmul bench: interrupted\n")
    assert not path.exists()


def test_an_ignored_interrupt_stays_ignored(capsys, monkeypatch):
    def interrupted(rungs, problem, *, on_progress, **options):
        signal.raise_signal(signal.SIGINT)
        on_progress("timing", 0.5)
        raise ValueError("it went on")

    monkeypatch.setattr(bench, "bench", interrupted)
    with on_sigint(signal.SIG_IGN):
        status, _, err = run(capsys, "bench", "--rungs", "njit_ikj", *QUICK)
    assert (status, err) == (2, "tiled_matmul bench: it went on\n")


def test_the_live_table_shows_what_the_plain_one_does(capsys, monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "120")
    status, out, _ = run(capsys, "bench", "--rungs", "njit_ikj", *QUICK)
    assert status == 0
    assert "njit_ikj" in out and "× numpy" in out and "1, the baseline" in out


@pytest.mark.gpu
def test_bench_on_the_gpu(capsys, tmp_path):
    path = tmp_path / "gpu.json"
    arguments = ["--rungs", "cuda_naive,cuda_coalesced", "--shapes", "300x200x400"]
    status, out, err = run(capsys, "bench", *arguments, "--budget", "0.5", "--json", str(path))
    assert status == 0, err
    records = results.load(path)
    assert [r.rung for r in records] == ["cublas", "cuda_naive", "cuda_coalesced"]
    assert {r.dtype for r in records} == {"float32"}
    assert all(r.gpu == backend.select().gpu.name and r.driver for r in records)
    assert {r.baseline for r in records} == {"cublas"} and records[1].kernel
