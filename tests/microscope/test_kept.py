"""microscope/compiled/kept.py: an entry is used exactly as long as all that it depends on stays."""

import os
import pickle

import pytest
from search_example import ORIGIN

from tiled_matmul import ROOT
from tiled_matmul.microscope.compiled import cuda, kept

KERNEL = pickle.dumps("a kernel")


@pytest.fixture
def made(tmp_path, monkeypatch):
    """Return a function that asks for a kernel, and returns whether it was compiled for that."""
    monkeypatch.setenv(kept.FOLDER, str(tmp_path / "compiled"))

    def ask(asked=KERNEL):
        compiled = []
        answer = kept.kept(asked, cuda.tools(), lambda: compiled.append(asked) or asked.hex())
        assert answer == asked.hex()
        return bool(compiled)

    assert ask() and not ask()
    return ask


def test_another_question_is_compiled_anew(made):
    assert made(b"not a pickle") and not made(b"not a pickle") and not made()


def test_without_a_folder_everything_is_compiled(made, monkeypatch):
    monkeypatch.delenv(kept.FOLDER)
    assert made() and made()


@pytest.mark.parametrize("name", kept.WHICH_GPU)
def test_which_gpu_is_visible_changes_no_code(made, monkeypatch, name):
    monkeypatch.setenv(name, "7")
    assert not made()


def change(monkeypatch, source):
    read = type(ROOT).read_bytes

    def with_a_comment(path):
        return read(path) + b"# changed" * (path == ROOT / source)

    monkeypatch.setattr(type(ROOT), "read_bytes", with_a_comment)


@pytest.mark.parametrize(
    "source",
    [
        *("src/tiled_matmul/ladder/ch04_1_cuda_naive.py", "src/tiled_matmul/kit/unroll.py"),
        *("src/tiled_matmul/microscope/compiled/triton.py", "src/tiled_matmul/machine/backend.py"),
        "src/tiled_matmul/microscope/written.py",
    ],
)
def test_a_changed_source_is_compiled_anew(made, monkeypatch, source):
    change(monkeypatch, source)
    assert made() and not made()


def a_kernel_of_this_file():
    return ORIGIN


@pytest.mark.parametrize("source", ["tests/microscope/test_kept.py", "tests/search_example.py"])
@pytest.mark.parametrize("wrapped", [False, True])
def test_so_is_a_kernel_of_a_changed_file_elsewhere(made, monkeypatch, source, wrapped):
    """The file that holds the kernel, and one that this file imports."""
    asked = pickle.dumps(a_kernel_of_this_file)
    asked = pickle.dumps({"job": asked}) if wrapped else asked
    assert made(asked)
    change(monkeypatch, source)
    assert made(asked) and not made(asked) and not made()


def test_another_version_of_a_package_is_compiled_anew(made, monkeypatch):
    others = [(name, version + ".1") for name, version in kept.packages()]
    assert {"numba", "triton", "torch"} <= {name for name, _ in others}
    monkeypatch.setattr(kept, "packages", lambda: others)
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


def test_what_fails_is_not_kept(made):
    def refuse():
        raise ValueError("no such kernel")

    for _ in range(2):
        with pytest.raises(ValueError, match="no such kernel"):
            kept.kept(b"wrong", [], refuse)
        assert isinstance(kept.kept(b"wrong", [], lambda: cuda.NoCompiler()), cuda.NoCompiler)
    assert kept.kept(b"wrong", [], lambda: "right") == "right"


def test_what_has_not_been_used_for_a_week_is_deleted(made, tmp_path):
    (old,) = (tmp_path / "compiled").glob("*.gz")
    os.utime(old, (0, 0))
    assert made(b"another kernel")
    assert len(list(old.parent.glob("*.gz"))) == 1 and not old.exists()
