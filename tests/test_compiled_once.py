"""compiled_once.py: an entry is used again exactly as long as all that it depends on stays."""

import os

import compiled_once
import pytest
from compiled_once import forget_unused, kept

from tiled_matmul import ROOT


@pytest.fixture
def made(tmp_path):
    """Return a function that asks for a kernel, and says whether it was compiled for that."""

    def ask(asked=b"a kernel"):
        compiled = []
        assert kept(tmp_path, asked, lambda: compiled.append(asked) or asked.decode()) == (
            asked.decode()
        )
        return bool(compiled)

    assert ask() and not ask()
    return ask


def test_another_question_is_compiled_anew(made):
    assert made(b"another kernel") and not made(b"another kernel") and not made()


@pytest.mark.parametrize(
    "source",
    [
        *("src/tiled_matmul/ladder/ch04_1_cuda_naive.py", "src/tiled_matmul/kit/unroll.py"),
        *("src/tiled_matmul/microscope/compiled/triton.py", "tests/ladder_ptx.py"),
        "tests/test_compiled_once.py",  # the test's own file: it may hold a kernel
    ],
)
def test_a_changed_source_is_compiled_anew(made, monkeypatch, source):
    read = type(ROOT).read_bytes
    changed = ROOT / source

    def with_a_comment(path):
        return read(path) + b"# changed" * (path == changed)

    monkeypatch.setattr(type(ROOT), "read_bytes", with_a_comment)
    assert made() and not made()


def test_another_version_of_a_package_is_compiled_anew(made, monkeypatch):
    others = [(name, version + ".1") for name, version in compiled_once.packages()]
    assert {"numba", "triton", "torch"} <= {name for name, _ in others}
    monkeypatch.setattr(compiled_once, "packages", lambda: others)
    assert made()


def test_another_tool_is_compiled_anew(made, monkeypatch, tmp_path):
    tool = tmp_path / "bin" / "cuobjdump"
    tool.parent.mkdir()
    tool.write_text("")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tool.parent), prepend=os.pathsep)
    assert made() and not made()
    tool.write_text("a newer one")
    assert made()


def test_another_switch_of_a_compiler_is_compiled_anew(made, monkeypatch):
    monkeypatch.setenv("NUMBA_OPT", "1")
    assert made()


def test_what_fails_is_not_kept(made, tmp_path):
    def refuse():
        raise ValueError("no such kernel")

    for _ in range(2):
        with pytest.raises(ValueError, match="no such kernel"):
            kept(tmp_path, b"wrong", refuse)
    assert made(b"wrong")


def test_what_no_run_has_used_for_a_week_is_deleted(made, tmp_path):
    made(b"used")
    old, _ = tmp_path.glob("*.gz")
    os.utime(old, (0, 0))
    forget_unused(tmp_path)
    assert len(list(tmp_path.glob("*.gz"))) == 1 and not old.exists()
