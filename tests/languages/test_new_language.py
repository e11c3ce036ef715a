"""A new language is its own file, its rungs and a line of the list: all else asks the object.

The language here is made up. Its kernels are texts, and it has neither a simulator nor a tracer.
"""

import importlib.util
import sys
from dataclasses import replace

import pytest
import torch
from stand_in_gpu import stand_in_gpu

from tiled_matmul import ladder
from tiled_matmul.__main__ import main
from tiled_matmul.ladder import Rung
from tiled_matmul.languages import TRITON, Language
from tiled_matmul.measure import bench, sanitizer
from tiled_matmul.problem import Problem

__all__ = ["stand_in_gpu"]  # a fixture
SMALL = Problem(24, 20, 28)
MODULE = '''
import torch

DTYPES = ("float32",)
echo_product_kernel = """\\
kernel product
    c = a · b
"""


def matmul(a, b, out=None):
    return torch.matmul(a, b, out=out)
'''


class Echo(Language):
    """Its kernels are texts."""

    def versions(self):
        return {"echo": "1.2"}

    def source(self, kernel):
        return kernel

    def lines(self, kernel):
        return kernel.splitlines()


class TracedEcho(Echo):
    def untraced(self):
        return ""

    def trace(self, matmul, a, b, **options):
        return [Traced(f"{options['order']}: {tuple(matmul(a, b).shape)}")]


class Traced(str):
    findings = ("a fault",)


@pytest.fixture
def add(monkeypatch, tmp_path):
    """Return a function that puts a rung in Echo at the end of the ladder, and returns it."""
    path = tmp_path / "ch99_echo_product.py"
    path.write_text(MODULE)

    def add(kind=Echo, **facts):
        echo = kind(**{"name": "echo", "title": "Echo", "packages": ("echo-compiler",)} | facts)
        made = Rung("echo_product", "a text", "echo_product", echo, 99, after="cuda_best")
        monkeypatch.setattr(ladder, "LADDER", (*ladder.LADDER, made))
        monkeypatch.setitem(ladder._Finder.files, "echo_product", path)
        return made

    yield add
    sys.modules.pop("tiled_matmul.ladder.echo_product", None)
    vars(ladder).pop("echo_product", None)


def run(capsys, *arguments):
    status = main(list(arguments))
    return status, *capsys.readouterr()


def test_the_ladder_has_its_rung(add, capsys):
    made = add()
    assert ladder.rung("echo_product") is made
    assert (made.device, made.available, made.dtypes) == ("gpu", True, ("float32",))
    status, out, _ = run(capsys, "ladder", "echo_product")
    assert (status, out) == (0, "kernel product\n    c = a · b\n")
    changed = made.changes().splitlines()
    assert changed[-2:] == ["+kernel product", "+    c = a · b"]
    assert {line[0] for line in changed[:-2]} == {"-", " "}
    _, out, _ = run(capsys, "ladder")
    (row,) = [line for line in out.splitlines() if line.startswith("echo_product ")]
    assert row.split()[1:4] == ["99", "2", "2"]


@pytest.mark.parametrize("on_gpu", [False, True])
def test_without_a_simulator_it_runs_on_a_gpu_only(add, monkeypatch, on_gpu):
    from tiled_matmul.machine import backend

    chosen = backend.Backend("gpu" if on_gpu else "simulator", "for a test")
    monkeypatch.setattr(backend, "select", lambda: chosen)
    assert add().language.runs_here() is on_gpu
    assert add(simulator="an interpreter").language.runs_here()
    assert add(device="cpu").language.runs_here()


@pytest.mark.parametrize("graphs", [False, True])
def test_a_graph_captures_its_launches_if_it_says_so(add, stand_in_gpu, graphs):
    from tiled_matmul.measure import clock

    captured = []
    stand_in_gpu.setattr(
        clock, "_captured", lambda name, call, launches: captured.append(name) or call
    )
    add(graphs=graphs)
    where, matmuls = bench.contestants(["echo_product"])
    assert (where, list(matmuls)) == ("gpu", ["cublas", "echo_product"])
    records = bench.bench(["echo_product"], SMALL, budget_s=1e-9)
    assert [record.graph for record in records] == [graphs] * 2
    assert set(captured) == ({"cublas", "echo_product"} if graphs else set())


def test_its_versions_are_in_the_records_of_its_rungs_alone(add, stand_in_gpu):
    other = replace(add(), name="other", language=TRITON)
    records = bench.bench(["echo_product", other], SMALL, budget_s=1e-9)
    assert {record.rung: record.versions.get("echo") for record in records} == {
        "cublas": None,
        "echo_product": "1.2",
        "other": None,
    }


def test_it_is_not_traced_unless_it_brings_a_tracer(add, capsys):
    add()
    status, out, err = run(capsys, "trace", "echo_product")
    assert (status, out) == (2, "")
    expected = "echo_product is written in Echo, which the course cannot trace"
    assert err == f"tiled_matmul trace: {expected}\n"
    with pytest.raises(ValueError, match="written in Echo"):
        add().language.trace(torch.matmul, *torch.ones((2, 3, 3)))


def test_its_own_tracer_is_asked(add, capsys):
    add(TracedEcho)
    status, out, _ = run(capsys, "trace", "echo_product", "--shape", "3x4x5", "--order", "reverse")
    assert (status, out) == (1, "reverse: (3, 4)\n")


def test_what_it_does_not_answer_is_refused(add):
    with pytest.raises(ValueError, match="compiles no kernels in Echo"):
        add().language.compiled(torch.matmul, torch.ones(2, 2), torch.ones(2, 2), (9, 0))


def test_where_it_is_not_installed_its_rungs_say_so_and_others_run(add, capsys):
    made = add(device="cpu", module="no_such_compiler")
    message = "Echo is not installed: pip install echo-compiler"
    assert not made.available and not made.language.runs_here()
    with pytest.raises(ModuleNotFoundError, match=message):
        made.matmul  # noqa: B018
    _, out, _ = run(capsys, "ladder")
    (row,) = [line for line in out.splitlines() if line.startswith("echo_product ")]
    assert row.split() == ["echo_product", "99", "a", "text"]
    status, _, err = run(capsys, "trace", "echo_product")
    assert status == 2 and "which the course cannot trace" in err
    status, _, err = run(capsys, "bench", "--rungs", "echo_product")
    assert (status, err) == (2, f"tiled_matmul bench: {message}\n")


def test_a_bench_of_all_leaves_out_what_is_not_installed(add, capsys, monkeypatch):
    from tiled_matmul.commands import bench as command

    made, seen = add(device="cpu", module="no_such_compiler"), []

    def timed(rungs, *rest):
        seen.extend(rungs)
        return []

    monkeypatch.setattr(command, "_timed", timed)
    monkeypatch.setattr("tiled_matmul.kit.backend.select", on_a_gpu)
    monkeypatch.setattr(bench, "need_gpu", lambda: None)
    _, _, err = run(capsys, "bench", "--shapes", "8x8x8", "--no-twins")
    assert f"Rungs in Echo are left out: {made.language.missing()}.\n" in err
    assert {r.name for r in seen} == {r.name for r in ladder.LADDER} - {"echo_product"}


def test_a_bench_of_all_keeps_it_apart_from_rungs_with_graphs(add, monkeypatch):
    from argparse import Namespace

    from tiled_matmul.commands import bench as command

    made = replace(add(), dtype="float16")
    monkeypatch.setattr(ladder, "LADDER", (*ladder.LADDER[:-1], made))
    monkeypatch.setattr("tiled_matmul.kit.backend.select", on_a_gpu)
    monkeypatch.setattr(bench, "need_gpu", lambda: None)
    plan = command._plan(Namespace(rungs=None, dtype=None, shapes="8x8x8", twins=False))
    groups = [{r.language.graphs for r in rungs} for rungs, _ in plan]
    assert groups == [{False}, {False}, {True}, {False}]
    assert plan[-1][0] == [made]


def on_a_gpu():
    from tiled_matmul.machine.backend import Backend

    return Backend("gpu", "for a test")


@pytest.mark.parametrize(
    ("facts", "looked_at"),
    [
        ({}, ["memcheck"]),
        ({"sanitizers": ("memcheck", "racecheck")}, ["memcheck", "racecheck"]),
        ({"sanitizers": ()}, []),
    ],
)
def test_compute_sanitizer_looks_at_what_it_understands(add, facts, looked_at):
    made = add(**facts)
    assert [name for name in sanitizer.TOOLS if sanitizer.looked_at(made, name)] == looked_at


def test_a_stranger_among_the_files_needs_no_language(add):
    """A file that no rung names is imported as it is, while it is being written."""
    made = add()
    unlisted = "echo_sketch"
    ladder._Finder.files[unlisted] = made.source
    try:
        assert importlib.import_module(f"tiled_matmul.ladder.{unlisted}").DTYPES == ("float32",)
    finally:
        del ladder._Finder.files[unlisted]
        sys.modules.pop(f"tiled_matmul.ladder.{unlisted}", None)
