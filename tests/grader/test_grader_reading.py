"""grader/reading.py: whatever a file or a worker's reply holds, this process stays small."""

import json
import os
import subprocess
import sys

import pytest

from tiled_matmul.grader import cells, on_gpu, pool, reading, starters, teacher, wire

(SOLVED,) = [path for path in starters.solutions() if path.name.startswith("01")]
MEMORY_MB = 20

MEASURED = """
import sys
from tiled_matmul.grader import cells, compare, on_gpu, reading, submission, teacher, wire
from tiled_matmul.grader.folders import exercise, exercises
from pathlib import Path

def peak():
    # Not ru_maxrss: a process inherits that of the one which started it.
    (line,) = [x for x in open("/proc/self/status") if x.startswith("VmHWM")]
    return int(line.split()[1]) / 1024

exercises()
before = peak()
{code}
print(peak() - before)
"""
READ = """
submission.key(reading.taken(Path(sys.argv[1]), Path(sys.argv[1]).parent), "a", None, False)
try:
    cells.collect(sys.argv[1])
except reading.Unreadable:
    pass
"""
REPLY = """
file = open(sys.argv[1], 'rb')
reader = wire.Reader(on_gpu.MOST_CODE)
while data := file.read(65536):
    try:
        message = reader.feed(data)
    except wire.BadMessage:
        message = {}, [b""]
class Worker:
    def ask(self, *arguments):
        return message
for name in ("11.1", "05.1"):
    one = exercise(name)
    try:
        compare.run_case(one, one.cases[0], Worker(), 1)
    except compare.Stop:
        pass
"""


def grown(code, data, path):
    """Return by how many MB a process grows that runs `code` on a file with this data."""
    path.write_bytes(data)
    done = subprocess.run(
        [sys.executable, "-c", MEASURED.format(code=code), str(path)],
        env=pool.own_environment(),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return float(done.stdout)


def notebook(**more):
    """Return the bytes of a solved notebook, with changes of the last cell."""
    data = json.loads(SOLVED.read_text(encoding="utf-8"))
    data["cells"][-1] |= more
    return json.dumps(data, ensure_ascii=False).encode()


def filled(start, part, end, size):
    return start + part * ((size - len(start) - len(end)) // len(part)) + end


def with_outputs(part, size):
    start, end = notebook(outputs=["here"]).split(b'"here"')
    return filled(start, part, b"0" + end, size)


HUGE, SMALL = reading.MAX_BYTES, reading.SMALL
FILES = {
    "lists for cells": filled(b'{"cells":[', b"[],", b"0]}", HUGE),
    "lists in outputs": with_outputs(b"[],", HUGE),
    "one wide character": filled('{"cells":"😀'.encode(), b"a", b'"}', HUGE),
    "small and all lists": with_outputs(b"[],", SMALL),
    "small and all cells": filled(b'{"cells":[', b'{"a":{}},', b"0]}", SMALL),
    "as much text as may be": notebook(source="😀" + "a" * (reading.MAX_TEXT - 16_000)),
}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.sample(3)
def test_a_file_does_not_fill_the_memory(name, tmp_path):
    assert len(FILES[name]) <= HUGE
    assert grown(READ, FILES[name], tmp_path / "a.ipynb") < MEMORY_MB


MOST = wire.MAX_HEADER - 100
REPLIES = {
    "lists for findings": wire.encode({"findings": [[]] * (MOST // 4), "counts": {}}),
    "counts": wire.encode({"findings": [], "counts": {f"{n:06}": 1 for n in range(MOST // 13)}}),
    "a result of lists": wire.encode({}, [filled(b"[", b"[],", b"0]", 64 << 10)]),
    "a result of names": wire.encode({}, [filled(b"{", b'"\xc3\xa9":0,', b'"a":0}', 64 << 10)]),
    "machine code": wire.encode({}, [bytes(on_gpu.MOST_CODE)]),
    "a long number": wire.encode({}, [filled(b"[", b"9", b"]", 64 << 10)]),
}


@pytest.mark.parametrize("name", REPLIES)
@pytest.mark.sample(3)
def test_a_reply_does_not_fill_the_memory(name, tmp_path):
    assert max(map(len, REPLIES.values())) < 5 << 20
    assert grown(REPLY, REPLIES[name], tmp_path / "reply") < MEMORY_MB


def padded(data):
    """Return the same notebook as a large file, which another process reads."""
    bom = b"\xef\xbb\xbf" if data.startswith(b"\xef\xbb\xbf") else b""
    return bom + b" " * (reading.SMALL + 1) + data.removeprefix(bom)


def read(path, data):
    path.write_bytes(data)
    try:
        return reading.notebook(path)
    except reading.Unreadable as error:
        return str(error)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (notebook(), None),
        (b"\xef\xbb\xbf" + notebook(), None),
        (json.dumps({"cells": [{"source": ["a\n", "\ud800é😀"]}]}).encode(), None),
        (b'{"cells": [3, null, {"source": {}, "id": [1]}, {"cell_type": 4}]}', None),
        (b"[1]", "no list of cells"),
        (b"{", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"1" * 5000, "not JSON"),
        (b"\xff", "not UTF-8"),
        (json.dumps({"cells": [0] * 2001}).encode(), "2,001 cells"),
        (notebook(source="a" * reading.MAX_TEXT), "more than 1 MB of text"),
    ],
)
def test_large_files_are_read_as_small_ones(data, words, tmp_path, monkeypatch):
    small = reading.SMALL
    monkeypatch.setattr(reading, "SMALL", 10 << 20)
    here = read(tmp_path / "a", data)
    monkeypatch.setattr(reading, "SMALL", small)
    elsewhere = read(tmp_path / "a", padded(data))
    if words == "not UTF-8":
        assert here == "not UTF-8 at byte 0" and elsewhere == f"not UTF-8 at byte {small + 1}"
    else:
        assert here == elsewhere
        assert words is None or words in here
    assert (words is None) == isinstance(here, dict)


def test_only_what_is_graded_is_kept(tmp_path):
    (tmp_path / "a").write_bytes(notebook(outputs=[1], metadata={"x": 1}, attachments={}, x=2))
    kept = reading.notebook(tmp_path / "a")
    assert {name for cell in kept["cells"] for name in cell} == {"cell_type", "id", "source"}
    assert set(kept["metadata"]["tiled_matmul"]) == {"exercises", "version"}


def test_large_outputs_are_no_fault(tmp_path):
    image = {"output_type": "display_data", "data": {"image/png": "QUJD" * (1 << 20)}}
    path = tmp_path / "a.ipynb"
    path.write_bytes(notebook(outputs=[image | {"metadata": {}}]))
    assert {one.status for one in cells.collect(path).answers} == {"FOUND"}


def test_a_reader_without_memory_blames_the_file_and_a_broken_one_does_not(tmp_path, monkeypatch):
    program = tmp_path / "reading.py"
    text = open(reading.__file__, encoding="utf-8").read()
    monkeypatch.setattr(reading, "__file__", str(program))
    file = tmp_path / "a.ipynb"
    program.write_text(text.replace("MAX_MEMORY = 1 << 30", "MAX_MEMORY = 128 << 20"))
    assert "128 MB of memory" in read(file, with_outputs(b"[],", HUGE))
    program.write_text(text.replace("MAX_SECONDS = 20", "MAX_SECONDS = 0"))
    assert "not read within" in read(file, with_outputs(b"[],", HUGE))
    program.write_text("1 / 0")
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        reading.notebook(file)


def put(folder, name="learner/01.ipynb"):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(SOLVED.read_bytes())
    return path


def refused(path, folder):
    with pytest.raises(reading.Unreadable) as caught:
        reading.taken(path, folder)
    return str(caught.value)


def test_a_submission_is_taken_as_it_is(tmp_path):
    path = put(tmp_path)
    assert reading.taken(path, tmp_path) == path.read_bytes()


def test_what_has_become_a_link_after_the_listing_is_not_followed(tmp_path):
    """A learner's own folder can change at any moment."""
    other = put(tmp_path / "in", "bob/01.ipynb")
    path = put(tmp_path / "in", "mallory/01.ipynb")
    path.unlink()
    path.symlink_to(other)
    assert "cannot be read" in refused(path, tmp_path / "in")
    path.unlink()
    path.parent.rmdir()
    path.parent.symlink_to(other.parent)
    assert path.exists() and "cannot be read" in refused(path, tmp_path / "in")
    path.parent.unlink()
    assert "cannot be read" in refused(path, tmp_path / "in")


def test_a_file_that_grows_while_it_is_read_is_cut(tmp_path, monkeypatch):
    path = put(tmp_path)
    monkeypatch.setattr(reading.stat, "S_ISREG", lambda mode: os.truncate(path, 1 << 40) or True)
    assert "at most 10 MB are read" in refused(path, tmp_path)


def test_a_submission_that_became_a_link_is_no_other_learners(tmp_path, monkeypatch):
    other, path = (put(tmp_path / "in", f"{name}/01.ipynb") for name in ("bob", "mallory"))
    listed = list(teacher.submissions(tmp_path / "in"))
    path.unlink()
    path.symlink_to(other)
    monkeypatch.setattr(teacher, "submissions", lambda folder, on_skip: listed)
    monkeypatch.setattr(teacher.practice, "grade", lambda path, *a, **b: {"exercises": [], "n": 1})
    bob, mallory = teacher.grade(tmp_path / "in", jobs=1)
    assert "n" in bob and "n" not in mallory and "cannot be read" in mallory["error"]
