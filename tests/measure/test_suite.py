"""The frame: budget, resume, what is left, and that nothing is lost or half written."""

import time

import pytest
from records_example import RUN

from tiled_matmul.measure import fingerprint, records, spent, suite
from tiled_matmul.measure.suite import Job, Suite, measure


@pytest.fixture
def prints(monkeypatch):
    """Fingerprints that a test changes."""
    found = {"a": "1", "b": "1"}
    monkeypatch.setattr(fingerprint, "of", found.__getitem__)
    return found


class Jobs:
    """Three jobs that note what is taken; one may fail."""

    def __init__(self):
        self.taken, self.fails, self.ran = [], "", ("a", "b")

    def take(self, name):
        if name == self.fails:
            raise ValueError(f"{name} does not fit")
        if self.fails is KeyboardInterrupt and name == "yz":
            raise KeyboardInterrupt
        self.taken.append(name)
        yield {"n": name, "rung": "a"}, {"ms": {"torch": 2.0, "a": 1.0}}
        if f"{name}!" == self.fails:
            raise ValueError("half way")
        yield {"n": name, "rung": "torch"}, {"ratio": 0.5}

    def suite(self, **more):
        def jobs():
            return [Job(name, self.ran, lambda n=name: self.take(n)) for name in ("x", "y", "yz")]

        return Suite("host", "for tests", jobs, "host/{machine}.json", **more)


@pytest.fixture
def jobs():
    return Jobs()


def run(jobs, out, seconds=60, provenance=RUN, say=None, more=None, **options):
    lines = []
    left = measure(
        jobs.suite(**(more or {})), provenance, out, seconds=seconds, say=lines.append, **options
    )
    return left, lines


def test_jobs_are_taken_and_told(jobs, prints, tmp_path):
    left, lines = run(jobs, tmp_path / "a.json")
    assert left == 0 and jobs.taken == ["x", "y", "yz"]
    found = records.load(tmp_path / "a.json", "host")
    assert [each.job for each in found] == ["x", "x", "y", "y", "yz", "yz"]
    # A record with a rung is of that rung's code, and a library's of none.
    assert [dict(each.kernels) for each in found[:2]] == [{"a": "1"}, {}]
    assert lines[0] == "x: a 2.000, torch 0.500"
    assert "3 of 3 jobs in" in lines[-1] and "the clock 0%" in lines[-1]


def test_without_time_nothing_is_begun_and_resume_goes_on(jobs, prints, tmp_path):
    out = tmp_path / "a.json"
    assert run(jobs, out, seconds=0)[0] == 3 and not out.exists()
    assert run(jobs, out, only="x")[0] == 0
    left, lines = run(jobs, out, resume=True)
    assert left == 0 and jobs.taken == ["x", "y", "yz"]
    assert lines[0] == "1 of 3 jobs are done"
    run(jobs, out)
    assert jobs.taken == ["x", "y", "yz"] * 2  # all anew


def test_a_job_that_fails_leaves_what_was_measured(jobs, prints, tmp_path):
    out = tmp_path / "a.json"
    run(jobs, out, only="x")
    before = out.read_bytes()
    for fails in ("y", "y!"):  # at once, and after its first record
        jobs.fails = fails
        left, lines = run(jobs, out, only="y", resume=True)
        assert left == 1 and any(line.startswith("y failed: ValueError: ") for line in lines)
        assert out.read_bytes() == before
    jobs.fails = ""
    assert run(jobs, out, resume=True)[0] == 0
    assert {each.job for each in records.load(out, "host")} == {"x", "y", "yz"}


def test_an_interrupt_ends_the_run_and_leaves_what_was_measured(jobs, prints, tmp_path):
    out = tmp_path / "a.json"
    jobs.fails = KeyboardInterrupt
    with pytest.raises(KeyboardInterrupt):
        run(jobs, out)
    assert {each.job for each in records.load(out, "host")} == {"x", "y"}


@pytest.mark.parametrize(
    "change",
    [{"gpu": "NVIDIA T4"}, {"driver": "590"}, {"versions": {"numba": "2"}}],
)
def test_records_of_another_machine_are_not_done(jobs, prints, tmp_path, change):
    out = tmp_path / "a.json"
    run(jobs, out)
    run(jobs, out, provenance=RUN | change, resume=True)
    assert len(jobs.taken) == 6
    run(jobs, out, provenance=RUN | change | {"commit": "other"}, resume=True)
    assert len(jobs.taken) == 6  # a commit that changes no kernel is none


def test_records_of_other_code_are_not_done(jobs, prints, tmp_path):
    out = tmp_path / "a.json"
    run(jobs, out)
    prints["b"] = "2"
    run(jobs, out, resume=True)
    assert len(jobs.taken) == 3  # each record is of the rung a
    prints["a"] = "2"
    run(jobs, out, resume=True)
    assert len(jobs.taken) == 6


def test_only_what_is_left_is_compiled(jobs, prints, tmp_path):
    compiled = []
    more = {"prepare": lambda waiting: compiled.extend(job.name for job in waiting)}
    run(jobs, tmp_path / "a.json", more=more, only="yz")
    run(jobs, tmp_path / "a.json", more=more, resume=True)
    assert compiled == ["yz", "x", "y"]


def test_a_text_in_no_name_is_refused_with_the_names(jobs, prints, tmp_path):
    with pytest.raises(ValueError, match="no job of host has 'q' in its name; there are x, y, yz"):
        run(jobs, tmp_path / "a.json", only="q")


def test_a_job_that_runs_more_today_is_not_done(jobs, prints, tmp_path):
    """Such as the ladder's, when a rung was added."""
    out = tmp_path / "a.json"
    run(jobs, out)
    prints["c"] = "1"
    jobs.ran = ("a", "b", "c")
    run(jobs, out, resume=True)
    assert len(jobs.taken) == 6
    run(jobs, out, resume=True)
    assert len(jobs.taken) == 6


def test_a_job_s_own_name_takes_it_alone(jobs, prints, tmp_path):
    run(jobs, tmp_path / "a.json", only="y")
    assert jobs.taken == ["y"]


def test_a_job_is_done_by_its_whole_name(jobs, prints, tmp_path):
    run(jobs, tmp_path / "a.json", only="yz")
    run(jobs, tmp_path / "a.json", only="y", resume=True)
    assert jobs.taken == ["yz", "y"]


def test_a_place_that_cannot_be_written_is_refused_before_anything_is_measured(jobs, tmp_path):
    with pytest.raises(ValueError, match="cannot be written: No such file or directory"):
        run(jobs, tmp_path / "absent" / "a.json")
    assert jobs.taken == []


def test_a_file_of_another_suite_is_refused_before_anything_is_measured(jobs, prints, tmp_path):
    records.save(tmp_path / "a.json", "fp8", [])
    with pytest.raises(ValueError, match="is of the suite 'fp8' and not 'host'"):
        run(jobs, tmp_path / "a.json")
    assert jobs.taken == []


def test_seconds_are_counted_where_they_are_spent():
    spent.forget()
    with spent.spending(spent.COMPILER):
        time.sleep(0.02)
        with spent.spending(spent.CLOCK):
            time.sleep(0.06)
    assert spent.shares(0.1).startswith("the clock 6")
    spent.forget()
    assert spent.shares(0.1) == "the clock 0%, compiling and checking 0%, the rest 100%"


def test_work_is_spread_over_processes(tmp_path):
    folder = str(tmp_path)
    suite.in_workers(_touch, [(folder, "a"), (folder, "b")])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]
    with pytest.raises(FileNotFoundError):
        suite.in_workers(_touch, [(folder + "/none", "a")])


def _touch(folder, name):
    with open(f"{folder}/{name}", "x"):
        pass
