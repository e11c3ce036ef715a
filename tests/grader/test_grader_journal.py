"""grader/journal.py: only this user's own grader counts, in a place of the user's own."""

import json
import os
import stat

import pytest

from tiled_matmul.__main__ import main
from tiled_matmul.grader import pool, practice, starters, submission
from tiled_matmul.grader.journal import Journal
from tiled_matmul.grader.reports import FORMATS

KEY, REPORT = "k" * 64, {"path": "a.ipynb", "exercises": []}
FULL = {"path": "a.ipynb", "exercises": [{"status": "PASS", "points": 3}]}


@pytest.fixture
def state(tmp_path, monkeypatch):
    """The user's state folder."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "tiled_matmul"


@pytest.fixture
def place(tmp_path, state):
    """A folder with `in`, the submissions, and `out`, where reports go."""
    for name in ("in", "out"):
        (tmp_path / name).mkdir()
    return tmp_path


def opened(place, name="out/marks.json.part"):
    return Journal(place / name, place / "in")


def test_what_was_kept_is_there_again(place):
    with opened(place) as journal:
        journal.keep(KEY, REPORT)
        journal.keep(KEY, FULL)  # the first one stays
    with opened(place) as journal:
        assert (journal.kept, journal.ignored) == ({KEY: REPORT}, 0)


def test_an_empty_journal_leaves_no_file(place):
    with opened(place):
        assert (place / "out/marks.json.part").exists()
    assert not (place / "out/marks.json.part").exists()


def test_forged_moved_and_torn_lines_do_not_count(place):
    path = place / "out/marks.json.part"
    with opened(place) as journal:
        journal.keep(KEY, REPORT)
    line = path.read_text().strip()
    code, _, text = line.partition(" ")
    full = json.dumps({"key": KEY, "report": FULL})
    for forged in (
        full,  # as a grader of before wrote it
        f"{code} {full}",  # the report of another submission, with this one's HMAC
        f"{'0' * 64} {text}",
        f"{code} {text.replace(KEY, 'j' * 64)}",  # this report under another key
        line[:-1],
        f"é {text}",
    ):
        path.write_text(f"{forged}\n")
        with opened(place) as journal:
            assert (journal.kept, journal.ignored) == ({}, 1), forged
    path.write_text(f"{line[:50]}\n{line}\n\n{full}")
    with opened(place) as journal:
        assert (journal.kept, journal.ignored) == ({KEY: REPORT}, 2)


def test_a_line_that_was_cut_short_spoils_none_after_it(place):
    path = place / "out/marks.json.part"
    path.write_text('0123 {"key": "cut sho')
    with opened(place) as journal:
        journal.keep(KEY, REPORT)
    with opened(place) as journal:
        assert (journal.kept, journal.ignored) == ({KEY: REPORT}, 1)


def test_another_users_secret_is_another(place, monkeypatch):
    with opened(place) as journal:
        journal.keep(KEY, REPORT)
    monkeypatch.setenv("XDG_STATE_HOME", str(place / "other"))
    with opened(place) as journal:
        assert (journal.kept, journal.ignored) == ({}, 1)


def test_the_secret_is_made_once_and_only_its_user_reads_it(place, state):
    old = os.umask(0)
    try:
        with opened(place) as first, opened(place, "out/b") as second:
            assert first.secret == second.secret and len(first.secret) == 32
    finally:
        os.umask(old)
    assert [path.name for path in state.iterdir()] == ["journal.key"]
    assert stat.S_IMODE((state / "journal.key").stat().st_mode) == 0o600
    assert stat.S_IMODE(state.stat().st_mode) == 0o700


def refused(place, *words, name="out/marks.json.part"):
    with pytest.raises(ValueError) as error:
        opened(place, name)
    for word in words:
        assert word in str(error.value), error.value


def test_a_secret_that_others_read_or_that_is_damaged_is_refused(place, state):
    with opened(place):
        pass
    secret = state / "journal.key"
    secret.chmod(0o640)
    refused(place, str(secret), "others may read it", "Remove it")
    secret.chmod(0o600)
    secret.write_bytes(b"short")
    refused(place, str(secret), "damaged")
    secret.unlink()
    secret.symlink_to(place / "elsewhere")
    (place / "elsewhere").write_bytes(b"x" * 32)
    refused(place, str(secret), "is a link")
    secret.unlink()
    state.chmod(0o777)
    refused(place, str(state), "can be written by everyone")


def test_a_secret_among_submissions_or_nowhere_is_refused(place, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(place / "in" / "state"))
    refused(place, "journal.key", "learners' files")
    (place / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(place / "file"))
    refused(place, "XDG_STATE_HOME")


def test_a_journal_among_submissions_is_refused(place, monkeypatch):
    refused(place, str(place / "in/a/marks.part"), "learners' files", name="in/a/marks.part")
    (place / "in/back").symlink_to(place / "out")
    refused(place, "in/back/x", "learners' files", name="in/back/x")
    (place / "out/x").symlink_to(place / "in/x")
    refused(place, "out/x", "learners' files", name="out/x")
    monkeypatch.chdir(place / "in")
    (place / "link").symlink_to(place / "in")
    with pytest.raises(ValueError, match="learners' files"):
        Journal(type(place)("marks.part"), place / "link")


def test_a_journal_that_others_could_write_is_refused(place):
    path, out = place / "out/marks.json.part", place / "out"
    path.symlink_to(place / "target")
    refused(place, str(path), "is a link")
    assert not (place / "target").exists()
    path.unlink()
    os.mkfifo(path)
    refused(place, str(path), "is not a regular file")
    path.unlink()
    path.touch()
    path.chmod(0o666)
    refused(place, str(path), "can be written by everyone")
    path.chmod(0o644)
    out.chmod(0o777)
    refused(place, str(out), "can be written by everyone")
    out.chmod(0o1777)
    refused(place, str(out), "can be written by everyone")
    out.chmod(0o755)
    (place / "link").symlink_to(out)
    refused(place, str(place / "link"), "is a link", name="link/marks.json.part")
    opened(place).__exit__()


def test_a_group_may_write_only_where_it_is_the_users_own(place, monkeypatch):
    from grp import struct_group
    from pwd import struct_passwd

    from tiled_matmul.grader import journal

    (place / "out").chmod(0o775)
    user = struct_passwd(("ada", "x", os.getuid(), 1, "", "/", ""))
    monkeypatch.setattr(journal.pwd, "getpwuid", lambda uid: user)

    def group(name, *members):
        entry = struct_group((name, "x", 1, list(members)))
        monkeypatch.setattr(journal.grp, "getgrgid", lambda gid: entry)

    group("ada")
    opened(place).__exit__()
    for name, *members in (("class",), ("ada", "bob")):
        group(name, *members)
        refused(place, str(place / "out"), "can be written by its group")
    monkeypatch.setattr(journal.grp, "getgrgid", {}.__getitem__)
    refused(place, "can be written by its group")


def test_a_journal_of_another_user_is_refused(place, monkeypatch):
    if os.geteuid() != 0:
        pytest.skip("only root can give a file to another user")
    path = place / "out/marks.json.part"
    path.touch()
    os.chown(path, 12345, -1)
    refused(place, str(path), "belongs to user 12345, not to you")
    path.unlink()
    os.chown(place / "out", 12345, -1)
    refused(place, str(place / "out"), "belongs to user 12345, not to you")


@pytest.fixture
def graded(place, capsys, monkeypatch):
    """Grade the folder `in` by the command; return the exit status and what it says of errors."""
    monkeypatch.setattr(pool, "sandbox_works", lambda: True)
    monkeypatch.setattr(practice, "grade", lambda *arguments, **options: dict(REPORT))
    (notebook,) = [path for path in starters.solutions() if path.name.startswith("01")]
    (place / "in/a.ipynb").write_bytes(notebook.read_bytes())

    def graded(*options):
        status = main(["grade", "--teacher", str(place / "in"), "--jobs", "1", *options])
        return status, capsys.readouterr().err

    return graded


def test_the_command_counts_the_lines_of_others(place, graded, monkeypatch):
    """A2: a learner knows the key, which is a digest of public things."""
    key = submission.key((place / "in/a.ipynb").read_bytes(), "a.ipynb", None, False)
    marks = place / "out/marks.json"
    part = place / "out/marks.json.part"
    part.write_text(json.dumps({"key": key, "report": FULL}))
    status, said = graded("--json", str(marks))
    assert status == 0 and f"{part}: 1 line is ignored" in said
    assert json.loads(marks.read_text())["submissions"] == [REPORT]
    assert not part.exists()


@pytest.mark.parametrize("name", FORMATS)
def test_no_report_may_lie_among_submissions(name, place, graded):
    status, said = graded(f"--{name}", str(place / "in/marks"))
    assert status == 2 and str(place / "in/marks") in said and "learners' files" in said
    assert sorted(path.name for path in (place / "in").iterdir()) == ["a.ipynb"]
