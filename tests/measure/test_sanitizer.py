"""The suite "sanitizer" tells a clean ladder from one with a fault, and a blind tool from either.

compute-sanitizer needs a GPU; here a stand-in prints what it prints.
"""

import sys

import pytest

from tiled_matmul.measure import records, sanitizer

CLEAN = "========= COMPUTE-SANITIZER\nran cuda_naive, 0.1 s\n========= ERROR SUMMARY: 0 errors\n"
FOUND = (
    "========= Invalid __global__ write of size 4 bytes\n"
    "=========     at planted_store_past_the_end+0x10\n"
    "========= ERROR SUMMARY: 3 errors\n"
)
RACES = "========= RACECHECK SUMMARY: 8065 hazards displayed (8065 errors, 0 warnings)\n"
NO_RACES = "========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)\n"


@pytest.fixture(autouse=True)
def no_other_tool(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")


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
def test_the_summary_is_read(log, found):
    assert sanitizer.count(log) == found


def test_a_log_without_a_summary_is_shown():
    with pytest.raises(sanitizer.SanitizeError, match="no summary:\nTarget application returned"):
        sanitizer.count("Target application returned an error\n")


def test_a_clean_ladder_passes(tmp_path):
    stand_in(tmp_path, CLEAN)
    report = sanitizer.run("memcheck", "launch")
    assert (report["found"], report["ran"]) == (0, ["cuda_naive"])
    called = (tmp_path / "called").read_text().split()
    assert called[:4] == ["--tool", "memcheck", "--error-exitcode", str(sanitizer.FOUND)]
    assert called[4:7] == ["--report-api-errors", "no", sys.executable]
    # Tensors have allocations of their own: in torch's pool memcheck would miss their ends.
    assert called[7:] == ["-m", "tiled_matmul.measure.sanitizer", "launch", "memcheck", "1"]


@pytest.mark.parametrize(("log", "status"), [(FOUND, 86), (FOUND, 0), (CLEAN, 1), (RACES, 86)])
def test_whatever_is_found_in_the_ladder_fails(tmp_path, log, status):
    stand_in(tmp_path, log, status)
    with pytest.raises(sanitizer.SanitizeError, match="in the ladder"):
        sanitizer.run("memcheck", "launch")


def test_racecheck_leaves_triton_to_its_compiler():
    from tiled_matmul.ladder import LADDER
    from tiled_matmul.languages import GLUON, NUMBA_CUDA, TRITON

    tools = sanitizer.TOOLS
    seen = {name: [r for r in LADDER if sanitizer.looked_at(r, name)] for name in tools}
    threads = [r for r in LADDER if r.language is NUMBA_CUDA]
    programs = [r for r in LADDER if r.language in (TRITON, GLUON)]
    assert all(r in seen[name] for r in threads for name in tools)
    assert all(r in seen["memcheck"] and r not in seen["racecheck"] for r in programs)
    assert not any(r.device == "cpu" for r in seen["memcheck"])


def test_a_planted_fault_has_to_be_found(tmp_path):
    stand_in(tmp_path, FOUND, 86)
    assert sanitizer.run("memcheck", "plant")["found"] == 3
    stand_in(tmp_path, CLEAN)
    with pytest.raises(sanitizer.SanitizeError, match="racecheck missed the planted fault"):
        sanitizer.run("racecheck", "plant")


def test_a_tool_that_hangs_is_stopped(tmp_path, monkeypatch):
    monkeypatch.setattr(sanitizer, "LONGEST_S", 0.5)
    stand_in(tmp_path, CLEAN, seconds=5)
    with pytest.raises(sanitizer.SanitizeError, match="memcheck launch took over 0.5 s"):
        sanitizer.run("memcheck", "launch")


def test_a_long_log_loses_its_middle():
    assert sanitizer.ends("short") == "short"
    text = sanitizer.ends("a" * 5000 + "b" * 5000, 100)
    assert text.startswith("a" * 100 + "\n…") and text.endswith("…\n" + "b" * 100)


def test_without_the_tool_it_says_so():
    with pytest.raises(sanitizer.SanitizeError, match="compute-sanitizer is not on PATH"):
        sanitizer.run("memcheck", "plant")


def test_a_job_makes_a_record_of_each_rung(monkeypatch):
    def run(tool, mode):
        return {"found": 3, "ran": []} if mode == "plant" else {"found": 0, "ran": ran}

    monkeypatch.setattr(sanitizer, "run", run)
    ran = sanitizer.names("racecheck")
    taken = list(sanitizer.take("racecheck"))
    assert taken[0] == (
        {"tool": "racecheck", "planted": "planted_missing_barrier", "rungs": []},
        {"found": 3},
    )
    assert [case["rung"] for case, _ in taken[1:]] == ran
    ran = ran[1:]
    with pytest.raises(sanitizer.SanitizeError, match="racecheck: ran .* and not"):
        list(sanitizer.take("racecheck"))


def test_shapes_are_ragged():
    assert set(sanitizer.SHAPES) == set(sanitizer.TOOLS)
    for shapes in sanitizer.SHAPES.values():
        for shape in shapes:
            m, n, k = (int(size) for size in shape.split("x"))
            assert m % 16 and n % 16 and k % 16
        # Wide loads are taken in one, refused in another, and several blocks are launched.
        assert any(size.split("x")[1] == "140" for size in shapes)
        assert any(int(size.split("x")[1]) % 2 for size in shapes)


def test_the_record_found_nothing_but_what_was_planted():
    entries = records.load(sanitizer.SUITES[0].path("h200"), "sanitizer")
    assert {each.case["tool"] for each in entries} == set(sanitizer.TOOLS)
    for each in entries:
        assert (each.values["found"] > 0) == ("planted" in each.case), each
    assert {"cuda_naive", "triton_best"} <= {each.case.get("rung") for each in entries}
