"""tools/mutate.py: a fault that a test notices is killed, one that no test notices survives."""

import sys

import pytest

from tiled_matmul import ROOT

sys.path.insert(0, str(ROOT / "tools"))

import mutate  # noqa: E402

# Without torch, which takes seconds: the first run's time limits those that never end.
mutate.FORK.set_forkserver_preload(["pytest"])
LIST = """# A project of two functions, one of which is tested.
least 0.7

@ src/sums.py: tests/test_sums.py -k "not slow"

- a + b
+ a - b

# It never ends.
- range(n):
+ iter(int, 1):

-     total = 0
+     total = 1
+     total -= 1
"""


@pytest.fixture
def project(tmp_path):
    """Return the folder of a project with one weak test, of which one mutant survives."""
    root = tmp_path / "project"
    for folder in ("src", "tests"):
        (root / folder).mkdir(parents=True)
    (root / "pyproject.toml").write_text("")
    (root / "src" / "sums.py").write_text(
        "def add(a, b):\n    return a + b\n\n\n"
        "def count(n):\n    total = 0\n    for _ in range(n):\n        total += 1\n"
        "    return total\n"
    )
    (root / "tests" / "test_sums.py").write_text(
        "import sums\n\n\ndef test_add():\n    assert sums.add(1, 2) == 3\n\n\n"
        "def test_count():\n    assert sums.count(3) == 3\n\n\n"
        "def test_slow():\n    assert False\n"
    )
    (root / "tests" / "mutants.txt").write_text(LIST)
    return root


@pytest.mark.long
def test_survivors_are_named_and_the_share_decides(project, capsys, monkeypatch):
    monkeypatch.setattr(mutate, "MARGIN_S", 0)
    assert mutate.main(["--jobs", "1"], project) == 1
    printed = capsys.readouterr().out
    assert "survived: mutants.txt:13: src/sums.py: total = 0  →  total = 1 total -= 1" in printed
    assert "timed out: mutants.txt:10" in printed and "mutants.txt:6" not in printed
    assert "2 of   3 killed: 66.7%, least 70.0%" in printed
    assert "return a + b" in (project / "src" / "sums.py").read_text()
    path = project / "tests" / "mutants.txt"
    path.write_text(LIST.replace("0.7", "0.5").replace("iter(int, 1)", "range(n + 1)"))
    assert mutate.main([], project) == 0


def test_some_mutants_can_be_chosen_and_listed(project, capsys):
    assert mutate.main(["--only", "total = 1"], project) == 0
    assert "0 of   1 killed" in capsys.readouterr().out
    assert mutate.main(["--list"], project) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3
    assert mutate.main(["--only", "nothing has this"], project) == 2


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("- a + b", "- a * b", "the old text is there 0 times: mutants.txt:6: "),
        ("- a + b", "- total", "the old text is there 3 times: mutants.txt:6: "),
        ("+ a - b", "+ a -", "the source is no longer Python"),
        ("+ a - b", "= a - b", "mutants.txt:7: not understood: = a - b"),
        (' -k "not slow"', "", "without any mutant a test fails: pytest tests/test_sums.py"),
        (' -k "not slow"', ' -k "nothing"', "3 deselected"),
    ],
)
def test_a_wrong_list_is_an_error(project, capsys, old, new, message):
    path = project / "tests" / "mutants.txt"
    path.write_text(LIST.replace(old, new))
    assert mutate.main([], project) == 2
    assert message in capsys.readouterr().err


def test_the_list_fits_the_sources():
    """Each mutant can be planted in the sources as they are now, and there are enough of them."""
    mutants, least = mutate.read((ROOT / "tests" / "mutants.txt").read_text(encoding="utf-8"))
    for mutant in mutants:
        mutant.apply((ROOT / mutant.path).read_text(encoding="utf-8"))
    files = {name for mutant in mutants for name in mutant.tests if name.endswith(".py")}
    assert [name for name in sorted(files) if not (ROOT / name).exists()] == []
    assert len(mutants) >= 150 and least >= 0.9
