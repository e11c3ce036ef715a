"""Where numbers come from: the commit, and what a process says of its machine."""

import pytest

from tiled_matmul.measure import provenance


@pytest.fixture(autouse=True)
def asked_again():
    provenance.commit.cache_clear()
    yield
    provenance.commit.cache_clear()


def test_the_commit_can_be_given(monkeypatch):
    monkeypatch.setenv("TILED_MATMUL_COMMIT", "fedcba9")
    assert provenance.commit() == "fedcba9"


def test_without_git_the_commit_is_unknown(monkeypatch, tmp_path):
    monkeypatch.delenv("TILED_MATMUL_COMMIT", raising=False)
    monkeypatch.setattr(provenance, "ROOT", tmp_path)
    assert provenance.commit() == "unknown"


def test_a_changed_source_is_a_dirty_commit(monkeypatch, tmp_path):
    import subprocess

    def git(*arguments):
        who = ["-c", "user.name=n", "-c", "user.email=e@example.org"]
        subprocess.run(["git", "-C", tmp_path, *who, *arguments], check=True, capture_output=True)

    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").write_text("1")
    git("init")
    git("add", ".")
    git("commit", "-m", "first")
    monkeypatch.delenv("TILED_MATMUL_COMMIT", raising=False)
    monkeypatch.setattr(provenance, "ROOT", tmp_path)
    (tmp_path / "results.json").write_text("[]")
    assert not provenance.commit().endswith("-dirty")
    (tmp_path / "src" / "a.py").write_text("2")
    provenance.commit.cache_clear()
    assert provenance.commit().endswith("-dirty")


def test_a_stamp_of_this_process():
    stamp = provenance.this_process(["numpy", "no-such-package"])
    assert set(stamp) == {"gpu", "driver", "cpu", "versions"}
    assert set(stamp["versions"]) == {"python", "numpy"}
    assert stamp["cpu"].endswith(" threads")
