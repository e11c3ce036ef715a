"""Files of records: their form, what is refused, and what is out of date in the checkout."""

import json
import os
import re
from dataclasses import replace

import jsonschema
import pytest
from records_example import RUN, entry

from tiled_matmul import ROOT
from tiled_matmul.measure import fingerprint, records, suites
from tiled_matmul.measure.drawn import SEED, drawn
from tiled_matmul.measure.records import Entry

FIRST = f"0: {drawn(SEED, 1)[0]}"

SCHEMA = json.loads((ROOT / "results" / "schema.json").read_text())
FILES = [pytest.param(path, name, id=str(path)) for path, name, _ in suites.files()]


def stored(**changes):
    """Return the content of a file with two records, changed at its top."""
    rows = [
        {"kernels": {"r": "0f"}, "case": {"rung": "r"}, "values": {"ms": 1}},
        {"kernels": {}, "case": {"rung": "torch"}, "values": {"ms": 2}},
    ]
    rows = [{"run": 0, "job": "j", "asked": ""} | row for row in rows]
    return {"format": 1, "suite": "host", "runs": [dict(RUN)], "records": rows} | changes


def changed(number, **changes):
    """Return the content of a file, one of its records changed."""
    found = stored()
    found["records"][number] |= changes
    return found


def lacking(key, number=None):
    found = stored()
    del (found if number is None else found["records"][number])[key]
    return found


def test_what_is_saved_is_loaded(tmp_path):
    entries = [entry({"n": 1}, {"ms": 0.5}, {"a": "0f"}), entry({"n": 2}, {"µs": [1, None]})]
    entries.append(replace(entries[0], run=RUN | {"gpu": "NVIDIA T4"}))
    records.save(tmp_path / "a.json", "host", entries)
    assert records.load(tmp_path / "a.json", "host") == entries
    lines = (tmp_path / "a.json").read_text().splitlines()
    assert sum(line.startswith('  {"run": ') for line in lines) == 3  # a line each
    records.save(tmp_path / "a.json", "host", [])
    assert records.load(tmp_path / "a.json", "host") == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([], "must hold an object with format, suite, runs, records; it holds a list"),
        (lacking("records"), "key 'records' is missing"),
        (stored(more=1), "key 'more' is not known"),
        (stored(format=2), "has format 2; this version reads format 1"),
        (stored(suite="fp8"), "is of the suite 'fp8' and not 'host'"),
        (stored(runs={}), "runs must be a list, it is an object"),
        (stored(runs=[{"gpu": "x"}]), "run 0: key 'driver' is missing"),
        (stored(runs=[RUN | {"gpu": None}]), "run 0: gpu must be a text, got None"),
        (stored(runs=[RUN | {"date": "today"}]), "run 0: date must be an ISO 8601 time"),
        (stored(runs=[]), "record 1: run 0 is not among 0 runs"),
        (changed(1, run=-1), "record 2: run -1 is not among 1 runs"),
        (changed(1, run=True), "record 2: run must be an integer, got True"),
        (lacking("kernels", 1), "record 2: key 'kernels' is missing"),
        (changed(0, kernels={"r": ""}), "record 1: kernels must map names to fingerprints"),
        (changed(1, speed=3), "record 2: key 'speed' is not known"),
        (changed(1, case={"rung": "r"}), "record 2: measures the same as record 1"),
    ],
)
def test_what_is_no_file_of_records_is_named_and_kept(tmp_path, content, message):
    path = tmp_path / "a.json"
    path.write_text(json.dumps(content))
    before = path.read_bytes()
    for call in (records.load, records.check_file):
        with pytest.raises(ValueError) as caught:
            call(path, "host")
        assert str(caught.value).startswith(str(path)) and message in str(caught.value)
    with pytest.raises(ValueError, match=r"a\.json"):
        records.update(path, "host", [entry({}, {})])
    assert path.read_bytes() == before and os.listdir(tmp_path) == ["a.json"]


def test_a_file_that_was_cut_off_is_named_and_kept(tmp_path):
    records.save(tmp_path / "a.json", "host", [entry({"n": n}, {}) for n in range(9)])
    whole = (tmp_path / "a.json").read_bytes()
    for part in (b"", whole[: len(whole) // 2], whole[:-3]):
        (tmp_path / "a.json").write_bytes(part)
        with pytest.raises(ValueError, match=r"a\.json is not JSON"):
            records.update(tmp_path / "a.json", "host", [entry({}, {})])
        assert (tmp_path / "a.json").read_bytes() == part


def test_a_key_that_stands_twice_is_refused(tmp_path):
    (tmp_path / "a.json").write_text('{"format": 1, "format": 1}')
    with pytest.raises(ValueError, match="'format' stands twice"):
        records.load(tmp_path / "a.json", "host")


def test_update_replaces_what_is_of_one_case_and_machine(tmp_path):
    path = tmp_path / "a.json"
    old = [entry({"n": 1}, {"ms": 1}, job="one"), entry({"n": 2}, {"ms": 2}, job="two")]
    gone = entry({"n": 3}, {"ms": 5}, job="two")  # a rung that the job has no more
    records.update(path, "host", [*old, gone])
    again = entry({"n": 2}, {"ms": 3}, job="two")
    other = entry({"n": 2}, {"ms": 4}, job="two", gpu="NVIDIA T4")
    assert records.update(path, "host", [again]) == [old[0], again]
    assert records.update(path, "host", [other]) == [old[0], again, other]
    assert records.load(path, "host") == [old[0], again, other]


def test_a_table_says_all_days_and_commits():
    one = {"date": "2026-11-23T06:30:00+00:00", "commit": "d80819b"}
    two = {"date": "2026-11-26T06:30:00+00:00", "commit": "5134735"}
    assert records.when([one, one]) == "2026-11-23 (d80819b)"
    assert records.when([two, one]) == "2026-11-23 to 2026-11-26 (d80819b, 5134735)"
    with pytest.raises(ValueError, match="no run"):
        records.when([])


@pytest.mark.parametrize(("path", "name"), FILES)
def test_every_file_of_the_checkout_fits_the_schema(path, name):
    jsonschema.validate(json.loads(path.read_text(encoding="utf-8")), SCHEMA)
    assert records.load(path, name)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (stored(suite="other"), "'other' is not one of"),
        (changed(0, values={"us": "fast"}), "'us'|'fast' is not of type 'number'"),
        (changed(0, case={"size": 3}), "'rung' is a required property"),
        (changed(0, kernels={"r": "XYZ"}), "does not match"),
        (stored(runs=[RUN | {"date": "today"}]), "does not match"),
        (lacking("runs"), "'runs' is a required property"),
    ],
)
def test_the_schema_refuses(content, message):
    errors = list(jsonschema.Draft202012Validator(SCHEMA).iter_errors(content))
    for error in errors:
        errors += error.context
    assert any(re.search(message, error.message) for error in errors), errors


def test_the_schema_knows_every_suite():
    kinds = {suite.stored_as for suite in suites.suites().values()}
    assert set(SCHEMA["properties"]["suite"]["enum"]) == kinds
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


# What is out of date


def checkout(root, entries, suite="host", path="results/host/h200.json"):
    (root / path).parent.mkdir(parents=True)
    records.save(root / path, suite, entries)
    return root


def test_a_changed_kernel_is_caught_by_name_with_the_command_that_helps(tmp_path):
    old = {"cuda_naive, host": fingerprint.of("cuda_naive, host"), "cuda_best, host": "0f"}
    root = checkout(tmp_path, [entry({"n": 1}, {}, old, job="host"), entry({"n": 2}, {}, {})])
    (found,) = suites.stale(root)
    assert found.names == ("cuda_best, host",) and found.count == 1
    assert str(found) == (
        "results/host/h200.json: 1 record is of an earlier cuda_best, host (host); "
        "measure it anew: python -m tiled_matmul measure host --only 'host'"
    )


def test_a_rung_that_is_gone_is_out_of_date(tmp_path):
    root = checkout(tmp_path, [entry({"n": 1}, {}, {"cuda_gone": "0f"})])
    assert [each.names for each in suites.stale(root)] == [("cuda_gone",)]


@pytest.mark.parametrize(
    ("suite", "job", "wanted"),
    [
        ("ladder", "512x512x512 float16", "ladder --only '512x512x512 float16'"),
        ("ladder", "512x512x512 float32", "ladder --only '512x512x512 float32'"),
        ("ladder", "512x512x512 float32, CPU", "loops --only '512x512x512 float32, CPU'"),
        ("ladder", "512x512x512 bfloat16", "bfloat16 --only '512x512x512 bfloat16'"),
        ("drawn", FIRST, f"drawn --only '{FIRST}'"),
        ("fp8", "errors, K 1024", "fp8 --only 'errors, K 1024'"),
    ],
)
def test_the_command_is_of_the_suite_that_has_the_job(suite, job, wanted):
    assert suites.help_for(suite, job).endswith(f": python -m tiled_matmul measure {wanted}")


def test_a_job_that_no_suite_has_is_said_so():
    assert suites.help_for("host", "gone") == (
        "no suite has this job any more: take its records away"
    )


def test_records_of_a_job_that_there_is_no_more_are_taken_away(tmp_path):
    path = tmp_path / "h200.json"
    assert suites.take_away(path, "drawn") == 0 and not path.exists()
    [stored] = [each for each, *_ in suites.files() if each.match("shapes/h200.json")]
    known = records.load(stored, "drawn")[:3]
    records.save(path, "drawn", [*known, replace(known[0], job="gone", case={"index": 7})])
    assert suites.take_away(path, "drawn") == 1
    assert records.load(path, "drawn") == known
    with pytest.raises(ValueError, match="is of the suite 'drawn' and not 'host'"):
        suites.take_away(path, "host")


def test_every_record_is_of_a_job_that_there_is():
    jobs: dict[str, set[str]] = {}
    for suite in suites.suites().values():
        jobs.setdefault(suite.stored_as, set()).update(job.name for job in suite.jobs())
    for path, name, entries in suites.files():
        assert {each.job for each in entries} <= jobs[name], path


def test_a_file_of_another_form_is_named(tmp_path):
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "h200.json").write_text('[{"rung": "cuda_naive"}]')
    with pytest.raises(ValueError, match=r"h200\.json names no suite"):
        list(suites.stale(tmp_path))


def test_an_unknown_suite_is_refused_with_those_that_there_are():
    with pytest.raises(ValueError, match="unknown suite 'fp9'; there are loops, ladder, bfloat16"):
        suites.suite("fp9")


def test_entries_are_compared_by_what_ran():
    one = Entry("j", {}, {}, {"a": "1", "b": "2"}, RUN)
    assert one.changed({"a": "1", "b": "2"}.__getitem__) == []
    assert one.changed({"a": "1", "b": "3"}.__getitem__) == ["b"]
