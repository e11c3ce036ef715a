"""`notebooks check` and records: what is out of date is named, and only what is may be listed."""

import pytest
from records_example import entry

from tiled_matmul.book.hygiene import check_records
from tiled_matmul.measure import fingerprint, records, suites


@pytest.fixture
def book(tmp_path):
    """A folder with two jobs, of which the second is of earlier code."""
    folder = tmp_path / "results" / "host"
    folder.mkdir(parents=True)
    now = {"cuda_naive, host": fingerprint.of("cuda_naive, host")}
    stored = [entry({"n": 1}, {}, now, job="one"), entry({"n": 2}, {}, {"cuda_best": "0f"}, "host")]
    records.save(folder / "h200.json", "host", stored)
    return tmp_path


def faults(root):
    return [str(fault) for fault in check_records(root)]


def test_a_record_of_other_code_is_a_fault(book):
    (fault,) = faults(book)
    assert fault == (
        "results/host/h200.json: 1 record is of an earlier cuda_best (host); measure it anew: "
        "python -m tiled_matmul measure host --only 'host'"
    )


def test_what_waits_for_a_gpu_is_listed_and_nothing_else(book):
    listed = book / suites.OUTDATED
    listed.write_text("results/host/h200.json: host\n")
    assert faults(book) == []
    listed.write_text("results/host/h200.json: host\nresults/host/h200.json: one\n")
    (fault,) = faults(book)
    assert "'results/host/h200.json: one' is not out of date: take the line away" in fault


def test_a_file_that_is_wrong_is_a_fault(book):
    (book / "results" / "host" / "h200.json").write_text('{"suite": "host"}')
    (fault,) = faults(book)
    assert "h200.json" in fault and "key 'format' is missing" in fault
