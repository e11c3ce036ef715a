"""`python -m tiled_matmul measure`: what it lists, takes, refuses, and goes on with."""

import pytest

from tiled_matmul.__main__ import main
from tiled_matmul.measure import results, suites

ONLY = ("--only", "128x128x128")


@pytest.fixture
def run(capsys, monkeypatch):
    monkeypatch.setenv("TILED_MATMUL_BUDGET_S", "0.01")

    def command(*arguments):
        status = main(["measure", *map(str, arguments)])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return command


def test_without_a_suite_it_lists_them(run):
    status, out, _ = run()
    assert status == 0
    assert [line.split()[0] for line in out.splitlines()] == list(suites.suites())


def test_a_suite_is_measured_and_not_again(run, tmp_path):
    out = tmp_path / "folder" / "a.json"
    status, printed, _ = run("loops", *ONLY, "--out", out)
    assert status == 0 and "1 of 1 jobs in" in printed and "compiling and checking" in printed
    found = results.load(out)
    assert {r.rung for r in found} >= {"numpy", "loops_python", "njit_ikj", "cpu_packed"}
    assert all(bool(r.kernel) == (r.rung != "numpy") for r in found)
    before = out.read_bytes()
    status, printed, _ = run("loops", *ONLY, "--out", out, "--resume")
    assert status == 0 and "1 of 1 jobs are done" in printed and out.read_bytes() == before
    run("loops", *ONLY, "--out", out)
    assert out.read_bytes() != before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fp9"], "unknown suite 'fp9'; there are loops, ladder"),
        (["loops", "--seconds", "0"], "--seconds must be positive, got 0"),
        (["loops", "fp8", "--out", "a.json"], "--out is one file, for one suite, and there are 2"),
        (["loops", "--only", "7x7"], "no job of loops has '7x7' in its name; there are 128x128"),
    ],
)
def test_what_cannot_be_is_refused(run, arguments, message):
    status, out, err = run(*arguments)
    assert status == 2 and message in err and err.count("\n") == 1


def test_a_suite_for_a_gpu_needs_one(run, tmp_path):
    if not suites.suite("fp8").fits():
        status, _, err = run("fp8", "--out", tmp_path / "a.json")
        assert status == 2 and "the simulators have no clock" in err
        assert not list(tmp_path.iterdir())


def test_another_file_is_refused_and_kept(run, tmp_path):
    (tmp_path / "a.json").write_text("[]")
    status, _, err = run("loops", *ONLY, "--out", tmp_path / "a.json")
    assert status == 2 and "it holds a list" in err
    assert (tmp_path / "a.json").read_text() == "[]"


def test_stale_records_are_listed(run, monkeypatch, tmp_path):
    status, out, _ = run("--stale", "--places")
    assert status == bool(out)
    assert set(out.splitlines()) == suites.outdated()
    monkeypatch.setattr(suites, "stale", lambda: iter(()))
    status, out, err = run("--stale")
    assert (status, out) == (0, "") and "all records are of the code as it is" in err
