"""tools/sanitize.py tells a clean ladder from one with a fault, and a blind tool from either.

compute-sanitizer needs a GPU; here a stand-in prints what it prints.
"""

import importlib.util
import json
import sys

import pytest

from tiled_matmul import ROOT

CLEAN = "========= COMPUTE-SANITIZER\nran cuda_naive, 0.1 s\n========= ERROR SUMMARY: 0 errors\n"
FOUND = (
    "========= Invalid __global__ write of size 4 bytes\n"
    "=========     at planted_store_past_the_end+0x10\n"
    "========= ERROR SUMMARY: 3 errors\n"
)
RACES = "========= RACECHECK SUMMARY: 8065 hazards displayed (8065 errors, 0 warnings)\n"
NO_RACES = "========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)\n"


@pytest.fixture
def tool(tmp_path, monkeypatch):
    spec = importlib.util.spec_from_file_location("sanitize", ROOT / "tools" / "sanitize.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return module


def stand_in(folder, printed, status=0, seconds=0):
    """Put a compute-sanitizer on PATH that prints a text, and writes what it was called with."""
    program = folder / "compute-sanitizer"
    (folder / "printed").write_text(printed)
    program.write_text(
        f'#!/bin/sh\necho "$@ $PYTORCH_NO_CUDA_MEMORY_CACHING" > {folder}/called\n'
        f"cat {folder}/printed\nsleep {seconds}\nexit {status}\n"
    )
    program.chmod(0o755)


@pytest.mark.parametrize(
    ("log", "found"), [(CLEAN, 0), (FOUND, 3), (RACES, 8065), (NO_RACES, 0), (NO_RACES + FOUND, 3)]
)
def test_the_summary_is_read(tool, log, found):
    assert tool.count(log) == found


def test_a_log_without_a_summary_is_shown(tool):
    with pytest.raises(tool.SanitizeError, match="no summary:\nTarget application returned"):
        tool.count("Target application returned an error\n")


def test_a_clean_ladder_passes(tool, tmp_path):
    stand_in(tmp_path, CLEAN)
    report = tool.run("memcheck", "launch", "cuda_naive")
    assert (report["found"], report["ran"]) == (0, ["cuda_naive"])
    called = (tmp_path / "called").read_text().split()
    assert called[:4] == ["--tool", "memcheck", "--error-exitcode", str(tool.FOUND)]
    assert called[4:7] == ["--report-api-errors", "no", sys.executable]
    # Tensors have allocations of their own: in torch's pool memcheck would miss their ends.
    assert called[8:] == ["launch", "memcheck", "--rungs", "cuda_naive", "1"]


@pytest.mark.parametrize(("log", "status"), [(FOUND, 86), (FOUND, 0), (CLEAN, 1), (RACES, 86)])
def test_whatever_is_found_in_the_ladder_fails(tool, tmp_path, log, status):
    stand_in(tmp_path, log, status)
    with pytest.raises(tool.SanitizeError, match="in the ladder"):
        tool.run("memcheck", "launch")


def test_racecheck_leaves_triton_to_its_compiler(tool):
    from tiled_matmul.ladder import LADDER
    from tiled_matmul.languages import GLUON, NUMBA_CUDA, TRITON

    seen = {name: [r for r in LADDER if tool.looked_at(r, name)] for name in tool.TOOLS}
    threads = [r for r in LADDER if r.language is NUMBA_CUDA]
    programs = [r for r in LADDER if r.language in (TRITON, GLUON)]
    assert all(r in seen[name] for r in threads for name in tool.TOOLS)
    assert all(r in seen["memcheck"] and r not in seen["racecheck"] for r in programs)
    assert not any(r.device == "cpu" for r in seen["memcheck"])


def test_a_planted_fault_has_to_be_found(tool, tmp_path):
    stand_in(tmp_path, FOUND, 86)
    assert tool.run("memcheck", "plant")["found"] == 3
    stand_in(tmp_path, CLEAN)
    with pytest.raises(tool.SanitizeError, match="racecheck missed the planted fault"):
        tool.run("racecheck", "plant")


def test_a_tool_that_hangs_is_stopped(tool, tmp_path, monkeypatch):
    monkeypatch.setattr(tool, "LONGEST_S", 0.5)
    stand_in(tmp_path, CLEAN, seconds=5)
    with pytest.raises(tool.SanitizeError, match="memcheck launch took over 0.5 s"):
        tool.run("memcheck", "launch")


def test_a_long_log_loses_its_middle(tool):
    assert tool.ends("short") == "short"
    text = tool.ends("a" * 5000 + "b" * 5000, 100)
    assert text.startswith("a" * 100 + "\n…") and text.endswith("…\n" + "b" * 100)


def test_without_a_gpu_or_the_tool_it_says_so(tool, tmp_path, capsys, monkeypatch):
    from tiled_matmul.machine import backend

    monkeypatch.setenv("TILED_MATMUL_BACKEND", "simulator")
    monkeypatch.setattr(backend, "select", lambda: backend.Backend("gpu", "for a test"))
    assert tool.main(["--out", str(tmp_path / "a.json")]) == 1
    assert "compute-sanitizer is not on PATH" in capsys.readouterr().err
    assert not (tmp_path / "a.json").exists()


@pytest.mark.parametrize("arguments", [["launch"], ["all", "memcheck"], []])
def test_a_command_line_that_is_none_is_refused(tool, capsys, arguments):
    with pytest.raises(SystemExit) as stopped:
        tool.main(arguments)
    assert stopped.value.code == 2 and "error" in capsys.readouterr().err


def test_shapes_are_ragged(tool):
    assert set(tool.SHAPES) == set(tool.TOOLS)
    for shapes in tool.SHAPES.values():
        for shape in shapes:
            m, n, k = (int(size) for size in shape.split("x"))
            assert m % 16 and n % 16 and k % 16
        # Wide loads are taken in one, refused in another, and several blocks are launched.
        assert any(size.split("x")[1] == "140" for size in shapes)
        assert any(int(size.split("x")[1]) % 2 for size in shapes)


def test_every_report_of_the_checkout_found_nothing_but_what_was_planted():
    for path in (ROOT / "results" / "sanitizer").glob("*.json"):
        report = json.loads(path.read_text(encoding="utf-8"))
        assert list(report["tools"]) == ["memcheck", "racecheck"], path
        for run in report["tools"].values():
            assert run["ladder"]["found"] == 0 and run["planted"]["found"] > 0, path
            assert "cuda_naive" in run["ladder"]["ran"], path
