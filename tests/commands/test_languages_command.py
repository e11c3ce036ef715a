"""`languages`: what it compiles, checks and says, with stand-ins for installer and compilers."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tiled_matmul.__main__ import main
from tiled_matmul.commands import languages
from tiled_matmul.ladder import rung
from tiled_matmul.languages.abroad import Abroad, CubinLanguage


@pytest.fixture
def stand_in(monkeypatch):
    """Nothing is installed, and each compiler makes the files that are kept."""
    monkeypatch.setattr(languages, "installed", lambda name, lock, newest: Path("python"))
    monkeypatch.setattr(languages, "changed", lambda lock, python: ["x 1 -> 2"])

    def kept(language, source, constants, python):
        (each,) = (r for r in languages_of(language) if r.home.SOURCE == source)
        (file,) = (f for f, c in each.home.PRODUCTS.items() if c == constants)
        path = each.source.parent / file
        return {p.suffix: p.read_bytes() for p in path.parent.glob(f"{path.stem}.[cjp]*")}

    for kind in (Abroad, CubinLanguage):
        monkeypatch.setattr(kind, "files", kept)
    monkeypatch.setattr(CubinLanguage, "error_on_cpu", lambda *_: 0.0)
    return monkeypatch


def languages_of(language):
    from tiled_matmul.ladder import ABROAD

    return [each for each in ABROAD if each.language == language]


def test_what_is_as_it_was_is_said(stand_in, capsys):
    assert main(["languages", "--check", "warp", "mojo"]) == 0
    said = capsys.readouterr().out
    assert "warp_tile-64-64-64.cubin: as it was" in said and "differs" not in said
    assert "warp_tile: right on the CPU, 256×384×192" in said
    assert "mojo_manual-9-3.ptx: as it was" in said


def test_what_differs_is_named_with_its_values_and_not_written(stand_in, capsys):
    home = rung("cute_tile").home
    file = next(iter(home.PRODUCTS))
    path = rung("cute_tile").source.parent / file
    told = path.with_suffix(".json")
    now = json.dumps(json.loads(told.read_text()) | {"registers": 1}).encode()
    before = told.read_bytes()
    stand_in.setattr(CubinLanguage, "files", lambda *_: {".json": now})
    assert main(["languages", "--newest", "cute"]) == 1
    said = capsys.readouterr().out
    assert "x 1 -> 2" in said
    assert f"{told.name}: differs; registers " in said and "-> 1" in said
    assert told.read_bytes() == before


def test_a_wrong_result_on_the_cpu_and_a_compiler_that_fails_are_errors(stand_in, capsys):
    stand_in.setattr(CubinLanguage, "error_on_cpu", lambda *_: 2.5)
    assert main(["languages", "warp"]) == 1
    assert "warp_tile is wrong on the CPU, by 2.5" in capsys.readouterr().err

    def fails(*_):
        raise RuntimeError("cuTile does not compile cutile_tile.py")

    stand_in.setattr(CubinLanguage, "files", fails)
    assert main(["languages", "--newest", "cutile"]) == 1
    assert "cutile_tile: cuTile does not compile" in capsys.readouterr().err


def test_an_unknown_language_is_refused(capsys):
    assert main(["languages", "fortran"]) == 2
    assert "unknown language 'fortran'; there is mojo, cutile" in capsys.readouterr().err


def test_versions_that_changed_are_listed(tmp_path, monkeypatch):
    lock = tmp_path / "x.lock"
    lock.write_text("# two\none==1\ntwo==2\n")
    answer = subprocess.CompletedProcess([], 0, stdout="one==1\ntwo==3\nthree==1\n")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: answer)
    assert languages.changed(lock, tmp_path) == ["three new -> 1", "two 2 -> 3"]
