"""The set-up cell, run for real as on Colab: package absent, address a local clone, no network."""

import os
import re
import shutil
import subprocess
import venv
from pathlib import Path

import numpy
import pytest

from tiled_matmul import ROOT
from tiled_matmul.book import cells
from tiled_matmul.book.files import repository

LIBRARIES = Path(numpy.__file__).parents[1]
IGNORED = shutil.ignore_patterns(
    ".git", ".venv*", ".site", "_build", "_artifacts", "wheelhouse", "__pycache__", "*.egg-info"
)


def new_python(folder):
    """Return a new Python that has every library that this one has, and not the course."""
    venv.create(folder, with_pip=False)
    (own,) = folder.glob("lib/python*/site-packages")
    # A plain path line in a .pth: the .pth files in there, the course's own one, are not read.
    (own / "libraries.pth").write_text(f"{LIBRARIES}\n")
    return folder / "bin" / "python"


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    return new_python(tmp_path_factory.mktemp("python"))


@pytest.fixture
def origin(tmp_path_factory):
    """A repository that holds this working tree, committed or not."""
    folder = tmp_path_factory.mktemp("origin") / "course"
    shutil.copytree(ROOT, folder, ignore=IGNORED)
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", "-C", str(folder)]
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "the course"]):
        subprocess.run([*git, *command], check=True)
    return folder


def run_cell(python, folder, source=None, **environment):
    """Run the set-up cell's text in `folder` and say from where the course was imported."""
    program = (
        f"{source or cells.setup_source()}\n"
        "import tiled_matmul\nprint(tiled_matmul.__file__, machine)\n"
    )
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "COLAB", "TILED"))}
    return subprocess.run(
        [python, "-c", program],
        cwd=folder,
        env={**kept, "TILED_MATMUL_BACKEND": "simulator", **environment},
        capture_output=True,
        text=True,
    )


def colab(origin):
    return {
        "COLAB_RELEASE_TAG": "release-colab-external_20261101",
        "TILED_MATMUL_REPOSITORY": f"file://{origin}",
        # Colab has a network for pip's build; this machine may have none, but has setuptools.
        "PIP_NO_BUILD_ISOLATION": "0",
        "PIP_NO_INDEX": "1",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_ROOT_USER_ACTION": "ignore",
    }


@pytest.mark.long
def test_on_colab_the_cell_fetches_installs_and_imports(origin, tmp_path, tmp_path_factory):
    one, other = (new_python(tmp_path_factory.mktemp("python")) for _ in range(2))
    done = run_cell(one, tmp_path, **colab(origin))
    assert done.returncode == 0, done.stderr
    checkout = tmp_path / "tiled-matmul"
    assert str(checkout / "src" / "tiled_matmul") in done.stdout
    assert "No GPU is used" in done.stdout and "Machine(gpu=False" in done.stdout
    commits = ["git", "-C", checkout, "rev-list", "--count", "HEAD"]
    assert subprocess.check_output(commits, text=True).strip() == "1"
    # Nothing but the clone is left behind.
    assert [path.name for path in tmp_path.iterdir()] == ["tiled-matmul"]
    # After a restart the course is installed: the cell fetches nothing, so a dead address is fine.
    dead = {**colab(origin), "TILED_MATMUL_REPOSITORY": "file:///nowhere"}
    again = run_cell(one, tmp_path, **dead, PATH="/no/git")
    # Another machine with the checkout, on which nothing is installed: it is taken as it is.
    third = run_cell(other, tmp_path, **dead)
    for done in (again, third):
        assert done.returncode == 0, done.stderr
        assert str(checkout / "src" / "tiled_matmul") in done.stdout


def test_a_fetch_that_fails_says_so_and_leaves_no_half_checkout(python, tmp_path):
    done = run_cell(python, tmp_path, **colab(tmp_path / "nowhere"))
    assert done.returncode != 0 and "nowhere" in done.stderr
    assert not (tmp_path / "tiled-matmul").exists()


@pytest.mark.parametrize(
    ("on_colab", "says"),
    [
        ({}, r"ModuleNotFoundError: .*make lab.*pip install.*"),
        (
            {"COLAB_RELEASE_TAG": "x"},
            "ValueError: this notebook does not hold the course's address: "
            "write it into REPOSITORY above, as https://github.com/OWNER/NAME",
        ),
    ],
)
def test_where_the_cell_cannot_fetch_it_says_what_to_do(python, tmp_path, on_colab, says):
    source = cells.SETUP.replace("{address}", cells.address_line(""))
    done = run_cell(python, tmp_path, source, **on_colab)
    assert done.returncode == 1
    assert re.fullmatch(says, done.stderr.strip().splitlines()[-1])
    assert list(tmp_path.iterdir()) == []


def test_the_cell_is_short_and_carries_the_configured_address():
    source = cells.setup_source()
    assert f'REPOSITORY = "{repository()}"' in source.splitlines()
    assert len(source.splitlines()) <= 24 and max(map(len, source.splitlines())) <= 92
