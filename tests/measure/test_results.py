import dataclasses
import json
import os

import pytest
import records_example as example

from tiled_matmul.measure import records as store
from tiled_matmul.measure import results
from tiled_matmul.measure.results import CASE, RUN, VALUES, Record

KEYS = (*CASE, *VALUES, *RUN)


def entry(**changes):
    """A record as it stands in a file; 2·64³ FLOPs in 0.5 ms."""
    return {
        "rung": "njit_ikj",
        "m": 64,
        "n": 64,
        "k": 64,
        "dtype": "float32",
        "launches": 1,
        "graph": False,
        "time_ms": 0.5,
        "spread": 0.02,
        "tflops": 2 * 64**3 / 0.5 / 1e9,
        "baseline": "numpy",
        "ratio": 0.25,
        "gpu": "CPU: Example, 2 threads",
        "driver": "",
        "versions": {"python": "3.11.7"},
        "date": "2026-11-21T11:00:00+00:00",
        "commit": "abc1234",
        "kernel": "0123456789abcdef",
    } | changes


def record(**changes):
    return Record(**entry(**changes))


def write(path, entries):
    """Write a file with a run for each entry, whatever stands in them."""
    runs, rows = [], []
    for each in entries:
        parts = [{x: each[x] for x in names if x in each} for names in (CASE, VALUES, RUN)]
        parts[1] |= {x: each[x] for x in each if x not in (*KEYS, "kernel")}
        runs.append(parts[2])
        kernels = {each["rung"]: each["kernel"]} if each.get("kernel") and "rung" in each else {}
        row = {"run": len(rows), "job": "a job", "asked": "", "kernels": kernels}
        rows.append(row | {"case": parts[0], "values": parts[1]})
    text = {"format": 1, "suite": "ladder", "runs": runs, "records": rows}
    path.write_text(json.dumps(text))
    return path


def test_a_file_comes_back_as_it_was_saved(tmp_path):
    records = [record(), record(rung="numpy", ratio=1.0, driver="580.1", kernel="")]
    results.save(tmp_path / "a.json", records)
    assert results.load(tmp_path / "a.json") == records
    stored = json.loads((tmp_path / "a.json").read_text())
    assert list(stored) == list(store.KEYS) and len(stored["runs"]) == 2
    assert stored["records"][0]["kernels"] == {"njit_ikj": "0123456789abcdef"}
    assert stored["records"][1]["kernels"] == {}


@pytest.mark.parametrize("key", KEYS)
def test_a_missing_key_is_named(tmp_path, key):
    broken = {name: value for name, value in entry().items() if name != key}
    path = write(tmp_path / "a.json", [entry(m=1, tflops=2 * 64**2 / 0.5 / 1e9), broken])
    where = "run 1" if key in RUN else "record 2"
    with pytest.raises(ValueError, match=f"a.json, {where}: key '{key}' is missing"):
        results.load(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"time_ms": float("nan")}, "time_ms must be a positive, finite number, got nan"),
        ({"time_ms": float("inf")}, "time_ms must be a positive, finite number, got inf"),
        ({"time_ms": 10**400}, "time_ms must be a positive, finite number, got 1000"),
        ({"m": 10**400}, "m must be a positive integer, got 1000"),
        ({"time_ms": 0}, "time_ms must be a positive"),
        ({"time_ms": -1.0}, "time_ms must be a positive"),
        ({"time_ms": "0.5"}, "time_ms must be a positive, finite number, got '0.5'"),
        ({"time_ms": True}, "time_ms must be a positive, finite number, got True"),
        ({"time_ms": None}, "time_ms must be a positive"),
        ({"spread": -0.1}, "spread must be"),
        ({"spread": float("nan")}, "spread must be"),
        ({"ratio": float("nan")}, "ratio must be"),
        ({"ratio": 0}, "ratio must be"),
        ({"tflops": float("nan")}, "tflops must be"),
        ({"tflops": 2.0}, "tflops must be 2·M·N·K over time_ms, which is 0.00104"),
        ({"rung": "numpy"}, "ratio must be 1, this being the baseline itself, got 0.25"),
        ({"kernel": ""}, "kernel must be a fingerprint, and \"\" for a baseline, got ''"),
        ({"rung": "numpy", "ratio": 1}, 'kernel must be a fingerprint, and "" for a baseline'),
        ({"m": 64.0}, "m must be a positive integer, got 64.0"),
        ({"k": 0}, "k must be a positive integer, got 0"),
        ({"n": True}, "n must be a positive integer, got True"),
        ({"launches": 0}, "launches must be a positive integer, got 0"),
        ({"launches": 1.0}, "launches must be a positive integer, got 1.0"),
        ({"graph": 1}, "graph must be true or false, got 1"),
        ({"launches": None}, "launches must be a positive integer, got None"),
        ({"dtype": "float31"}, "dtype must be one of"),
        ({"dtype": ["float32"]}, "dtype must be one of"),
        ({"rung": ""}, "rung must be a text that is not empty"),
        ({"gpu": ""}, "gpu must be a text"),
        ({"kernel": 3}, "kernels must map names to fingerprints, got {'njit_ikj': 3}"),
        ({"versions": {"numpy": 2}}, "versions must be an object"),
        ({"speedup": 3}, "key 'speedup' is not known"),
    ],
)
def test_a_value_that_cannot_be_is_refused(tmp_path, change, message):
    path = write(tmp_path / "a.json", [entry(**change)])
    with pytest.raises(ValueError) as caught:
        results.load(path)
    assert f"{path}, record 1: {message}" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is not JSON"),
        ("[{", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("[3]", "must hold an object with format, suite, runs, records; it holds a list"),
        ("{}", "key 'format' is missing"),
    ],
)
def test_what_is_no_results_file_is_refused(tmp_path, text, message):
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(ValueError, match=message):
        results.load(tmp_path / "a.json")


def test_unreadable_files_are_value_errors(tmp_path):
    (tmp_path / "bytes.json").write_bytes(b"\xff\xfe[]")
    for name in ("absent.json", "bytes.json", "."):
        with pytest.raises(ValueError, match="cannot be read"):
            results.load(tmp_path / name)


def test_two_records_of_one_measurement_are_refused(tmp_path):
    slower = entry(time_ms=1.0, tflops=2 * 64**3 / 1e9)
    path = write(tmp_path / "a.json", [entry(), slower])
    with pytest.raises(ValueError, match="record 2: measures the same as record 1"):
        results.load(path)


def test_a_failed_save_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "a.json"
    results.save(path, [record()])
    before = path.read_bytes()

    def full_disk(descriptor):
        raise OSError("No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OSError, match="No space"):
        results.save(path, [record(rung="other")])
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["a.json"]


def test_saving_through_a_link_keeps_the_link(tmp_path):
    results.save(tmp_path / "real.json", [])
    (tmp_path / "link.json").symlink_to(tmp_path / "real.json")
    results.save(tmp_path / "link.json", [record()])
    assert (tmp_path / "link.json").is_symlink()
    assert results.load(tmp_path / "real.json") == [record()]


def test_update_replaces_what_was_measured_again_and_nothing_else(tmp_path):
    path = tmp_path / "a.json"
    on_gpu = record(gpu="NVIDIA T4")
    results.update(path, [record(), on_gpu])
    again = record(time_ms=1.0, tflops=2 * 64**3 / 1e9, ratio=0.125, date="2026-11-22T00:00:00Z")
    new = record(dtype="float64")
    assert results.update(path, [again, new]) == [again, on_gpu, new]
    assert results.load(path) == [again, on_gpu, new]


def test_update_does_not_touch_a_file_it_cannot_read(tmp_path):
    (tmp_path / "a.json").write_text("not a results file")
    with pytest.raises(ValueError, match="is not JSON"):
        results.update(tmp_path / "a.json", [record()])
    assert (tmp_path / "a.json").read_text() == "not a results file"


def test_check_file_finds_what_update_would_stumble_over(tmp_path):
    results.check_file(tmp_path / "new.json")
    assert os.listdir(tmp_path) == []
    write(tmp_path / "bad.json", [entry(time_ms=0)])
    for name, message in (
        ("bad.json", "record 1"),
        ("absent/a.json", "cannot be written: No such file or directory"),
        (".", "is a folder"),
    ):
        with pytest.raises(ValueError, match=message):
            results.check_file(tmp_path / name)


def test_find_returns_the_one_or_says_what_there_is():
    records = [record(), record(gpu="NVIDIA T4"), record(rung="other", dtype="float64")]
    assert results.find(records, "other", 64, 64, 64, "float64") is records[2]
    assert results.find(records, "njit_ikj", 64, 64, 64, gpu="NVIDIA T4") is records[1]
    for arguments, message in (
        (("njit_ikj", 64, 64, 64), "several machines: choose gpu= from 'CPU: Example"),
        (("other", 64, 64, 64), "no record of other at 64x64x64 float32; other was measured at"),
        (("cuda_naive", 1, 2, 3), "no record of cuda_naive at 1x2x3.*measured: njit_ikj, other"),
    ):
        with pytest.raises(ValueError, match=message):
            results.find(records, *arguments)
    with pytest.raises(ValueError, match="measured: nothing"):
        results.find([], "cuda_naive", 1, 2, 3)


def test_the_keys_are_the_documented_ones():
    wanted = (
        "rung m n k dtype launches graph time_ms spread tflops baseline ratio gpu driver "
        "versions date commit kernel"
    )
    assert (*KEYS, "kernel") == tuple(wanted.split())
    assert (*KEYS, "kernel") == tuple(dataclasses.asdict(record()))


def test_every_results_file_of_the_checkout_loads():
    paths = set(results.RESULTS.glob("*.json")) - {results.RESULTS / "schema.json"}
    assert paths
    for path in paths:
        assert results.load(path), f"{path} holds no record"


def test_times_of_the_host_are_read_by_rung(tmp_path):
    path = tmp_path / "host.json"
    assert results.host_us(path) == {}
    store.save(path, "host", [example.entry({"rung": "triton_best"}, {"us": 19.5})])
    assert results.host_us(path) == {"triton_best": 19.5}


@pytest.mark.parametrize("values", [{}, {"us": "3"}, {"us": 0}])
def test_a_file_with_no_times_of_the_host_is_refused(tmp_path, values):
    path = tmp_path / "host.json"
    store.save(path, "host", [example.entry({"rung": "a"}, values)])
    with pytest.raises(ValueError, match=r"host\.json"):
        results.host_us(path)
