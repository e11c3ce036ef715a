"""grader/pool.py: the sandbox holds every link on the way to Python."""

import sys

from tiled_matmul.grader import pool


def test_links_that_lead_to_python_are_made_in_the_sandbox(tmp_path, monkeypatch):
    program, link, other = (tmp_path / name for name in ("program", "python3", "python"))
    program.touch()
    link.symlink_to(program)
    other.symlink_to("python3")
    monkeypatch.setattr(sys, "executable", str(other))
    assert pool._links_to_python() == [other, link]
    arguments = pool._confined()
    for place, target in ((other, "python3"), (link, str(program))):
        at = arguments.index(str(place))
        assert arguments[at - 2 : at] == ["--symlink", target]


def test_links_within_a_folder_of_the_sandbox_are_there_already(tmp_path, monkeypatch):
    link = tmp_path / "bin" / "python"
    link.parent.mkdir()
    link.symlink_to(sys.executable)
    monkeypatch.setattr(sys, "executable", str(link))
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    assert str(link) not in pool._confined()


def test_links_in_a_circle_end(tmp_path, monkeypatch):
    one, two = tmp_path / "one", tmp_path / "two"
    one.symlink_to(two)
    two.symlink_to(one)
    monkeypatch.setattr(sys, "executable", str(one))
    assert pool._links_to_python() == [one, two]
