"""Tuning by search: settings and variants that are right, trials, files, and the program."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest
from search_example import ORIGIN, file, record, trial

from tiled_matmul.measure import records as store
from tiled_matmul.measure import search
from tiled_matmul.measure.records import Entry
from tiled_matmul.problem import Problem

LARGE, SMALL, MISFIT = (search.SETTINGS[i] for i in (0, 9, 4))


def test_every_setting_fits_together_and_none_is_there_twice():
    assert len(set(search.SETTINGS)) == len(search.SETTINGS)
    assert all(setting.constants(True) for setting in search.SETTINGS)
    assert len({search.title(setting) for setting in search.SETTINGS}) == len(search.SETTINGS)


@pytest.mark.sample(3)
@pytest.mark.parametrize("variant", search.VARIANTS)
def test_every_variant_is_a_change_and_is_right(variant):
    a, b = Problem(33, 40, 21).inputs(kind="integers", device="cpu")
    candidate = search.Candidate(SMALL, variant)
    assert (candidate.matmul(a, b) == a @ b).all()
    plain = search.Candidate(SMALL).kernel
    assert (candidate.kernel is plain) == (variant == search.AS_IT_IS)
    assert candidate.kernel is search.Candidate(SMALL, variant).kernel  # compiled once
    assert candidate.kernel.targetoptions["max_registers"] == SMALL.max_registers


def test_a_job_for_each_setting_and_each_variant():
    assert [job for job in search.JOBS if job[1] == search.AS_IT_IS] == [
        (setting, search.AS_IT_IS) for setting in search.SETTINGS
    ]
    assert {job[1] for job in search.JOBS} == set(search.VARIANTS)


def test_a_file_comes_back_as_it_was_stored(tmp_path):
    stored = file(trial(LARGE, 1.01, 0.3), trial(SMALL, 0.99, 1.02, registers=168), trial(MISFIT))
    path = tmp_path / "gpu.json"
    store.save(path, search.SUITE, stored)
    assert store.load(path, search.SUITE) == stored
    large, small, failed = search.load(path)
    assert (large.setting, large.registers, large.same_bank) == (LARGE, 248, 0)
    assert large.record(4096).ratio == 1.01 and large.record(4096).gpu == "NVIDIA H200"
    assert large.record(1024).tflops == pytest.approx(15)
    assert not failed.records and failed.error == "too many threads"
    with pytest.raises(ValueError, match="was not measured at 4096: too many threads"):
        failed.record(4096)
    with pytest.raises(ValueError, match="was not measured at 512: 4096x4096x4096, 1024x1024x1024"):
        small.record(512)


def test_blocks_and_waves_follow():
    large, small = search.parse(file(trial(LARGE, 1, 0.3), trial(SMALL, 0.99, 1.02, registers=168)))
    assert (large.occupancy.blocks, small.occupancy.blocks) == (1, 3)
    assert large.waves(4096, 4096) == 512 / 132
    assert small.waves(1000, 1000) == 16 * 8 / (3 * 132)
    assert (large.busy(4096, 4096), large.busy(1024, 1024), small.busy(1000, 1000)) == (
        132,
        32,
        128,
    )
    row = large.row()
    assert (row["block"], row["blocks there"], row["busy, 1024³"]) == ("128×256×8", 1, 32)
    assert row["of cuBLAS, 1024³"] == 0.3


def test_a_trial_that_failed_has_a_line_too():
    failed = search.parse(file(trial(LARGE), trial(SMALL, 1, 1)))[0]
    assert failed.row()["registers"] == failed.row()["waves, 4096³"] == "–"


@pytest.mark.parametrize(
    ("stored", "says"),
    [
        (file(), "no setting was measured"),
        (file(trial(LARGE)), "no setting was measured"),
        (file(trial(LARGE, 1, 1, registers=0)), "registers cannot be 0"),
        (file(trial(LARGE, 1, 1, same_bank=1.5)), "same_bank cannot be 1.5"),
        (file(trial(LARGE, 1, 1), driver=""), "lacks driver"),
        (
            file(trial(LARGE, 1, 1) | {"records": [record(64, 1) | {"time_ms": 0}]}),
            "division by zero",
        ),
        (file(trial(LARGE, 1, 1) | {"records": [record(64, 1) | {"ratio": -1}]}), "ratio must be"),
        ([replace(file(trial(LARGE, 1, 1))[0], case={})], "not a file of the suite 'search'"),
    ],
)
def test_a_faulty_file_is_refused(tmp_path, stored, says):
    path = tmp_path / "gpu.json"
    store.save(path, search.SUITE, stored)
    with pytest.raises(ValueError, match=says):
        search.load(path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ValueError, match="none.json cannot be read"):
        search.load(tmp_path / "none.json")
    (tmp_path / "bad.json").write_text("{")
    with pytest.raises(ValueError, match="bad.json is not JSON"):
        search.load(tmp_path / "bad.json")


def test_nothing_is_measured_without_a_gpu():
    with pytest.raises(ValueError, match="no clock"):
        search.run(LARGE)


# The program.


def test_the_suite_takes_what_its_processes_answer(monkeypatch):
    def answer(command, **options):
        setting, variant = search.JOBS[int(command[3])]
        if setting == SMALL:
            return SimpleNamespace(stdout="", stderr="Traceback\nOUT_OF_RESOURCES", returncode=1)
        (found,) = file(trial(setting, 1.0, 0.5, variant=variant))
        said = f"noise\n{search.ANSWER}{json.dumps([found.case, found.values])}\n"
        return SimpleNamespace(stdout=said, stderr="", returncode=0)

    monkeypatch.setattr(search.subprocess, "run", answer)
    prints = {"cuda_best": "0123"}
    trials = search.parse([Entry("search", *each, prints, ORIGIN) for each in search.take()])
    assert [(t.setting, t.variant) for t in trials] == list(search.JOBS)
    failed = [t for t in trials if not t.records]
    assert [(t.setting, t.error) for t in failed] == [(SMALL, "OUT_OF_RESOURCES")]


def test_where_nothing_was_measured_there_is_no_record(monkeypatch):
    silent = SimpleNamespace(stdout="", stderr="", returncode=3)
    monkeypatch.setattr(search.subprocess, "run", lambda *command, **options: silent)
    with pytest.raises(ValueError, match="no setting was measured: ended with 3"):
        list(search.take())


def test_a_refused_setting_is_an_answer(tmp_path, monkeypatch):
    wrong = replace(LARGE, tile_k=3)
    monkeypatch.setattr(search, "JOBS", ((wrong, search.AS_IT_IS),))

    def refuse(setting, variant, alone):
        with alone:
            setting.constants(True)

    monkeypatch.setattr(search, "run", refuse)
    case, values = search.trial(0, str(tmp_path / "lock"))
    assert "do not fit together" in values["error"] and case["setting"]["tile_k"] == 3


def test_processes_take_turns(tmp_path):
    import fcntl

    with search.in_turn(str(tmp_path / "lock")), open(tmp_path / "lock") as other:
        with pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    with open(tmp_path / "lock") as other:
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)


@pytest.mark.gpu
def test_a_setting_is_measured_on_the_gpu():
    _, found = search.run(SMALL, edges=(512,), budget_s=0.1)
    assert found["registers"] > 64 and found["multiply_adds"] >= 512
    assert 0.05 < found["records"][0]["ratio"] < 5
