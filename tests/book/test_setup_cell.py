"""The set-up cell, run for real as on Colab: package absent, address a local clone, no network."""

import os
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


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    """A Python that has every library that this one has, and not the course."""
    folder = tmp_path_factory.mktemp("python")
    venv.create(folder, with_pip=False)
    python = folder / "bin" / "python"
    where = "import sysconfig; print(sysconfig.get_path('purelib'))"
    own = subprocess.check_output([python, "-c", where], text=True).strip()
    # A plain path line in a .pth: the .pth files in there, the course's own one, are not read.
    (Path(own) / "libraries.pth").write_text(f"{LIBRARIES}\n")
    return python


@pytest.fixture(scope="module")
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


def test_on_colab_the_cell_fetches_installs_and_imports(python, origin, tmp_path):
    done = run_cell(python, tmp_path, **colab(origin))
    assert done.returncode == 0, done.stderr
    checkout = tmp_path / "tiled-matmul"
    assert str(checkout / "src" / "tiled_matmul") in done.stdout
    assert "No GPU is used" in done.stdout and "Machine(gpu=False" in done.stdout
    commits = ["git", "-C", checkout, "rev-list", "--count", "HEAD"]
    assert subprocess.check_output(commits, text=True).strip() == "1"
    # Nothing but the clone is left behind.
    assert [path.name for path in tmp_path.iterdir()] == ["tiled-matmul"]
    # After a restart the course is installed: the cell fetches nothing, so a dead address is fine.
    again = run_cell(python, tmp_path, COLAB_RELEASE_TAG="x", TILED_MATMUL_REPOSITORY="file:///no")
    assert again.returncode == 0, again.stderr
    assert str(checkout / "src" / "tiled_matmul") in again.stdout
    subprocess.run(
        [python, "-m", "pip", "uninstall", "-q", "-y", "tiled_matmul"],
        check=True,
        env={**os.environ, "PIP_ROOT_USER_ACTION": "ignore"},
    )
    # Uninstalled, but the checkout is there: it is taken as it is.
    third = run_cell(
        python, tmp_path, **{**colab(origin), "TILED_MATMUL_REPOSITORY": "file:///nowhere"}
    )
    assert third.returncode == 0, third.stderr


def test_a_fetch_that_fails_says_so_and_leaves_no_half_checkout(python, tmp_path):
    broken = {**colab(tmp_path), "TILED_MATMUL_REPOSITORY": f"file://{tmp_path}/nowhere"}
    # The course must be absent for this one, whatever ran before in this Python.
    run_uninstall = [python, "-m", "pip", "uninstall", "-q", "-y", "tiled_matmul"]
    subprocess.run(run_uninstall, check=True, capture_output=True)
    done = run_cell(python, tmp_path, **broken)
    assert done.returncode != 0 and "nowhere" in done.stderr
    assert not (tmp_path / "tiled-matmul").exists()


def test_off_colab_the_cell_says_what_to_do(python, tmp_path):
    subprocess.run(
        [python, "-m", "pip", "uninstall", "-q", "-y", "tiled_matmul"],
        check=True,
        capture_output=True,
    )
    done = run_cell(python, tmp_path)
    last = done.stderr.strip().splitlines()[-1]
    assert done.returncode == 1
    assert last.startswith("ModuleNotFoundError") and "make lab" in last and "pip install" in last
    assert list(tmp_path.iterdir()) == []


def test_on_colab_without_an_address_the_cell_says_what_to_do(python, tmp_path):
    uninstall = [python, "-m", "pip", "uninstall", "-q", "-y", "tiled_matmul"]
    subprocess.run(uninstall, check=True, capture_output=True)
    source = cells.SETUP.replace("{address}", cells.address_line(""))
    done = run_cell(python, tmp_path, source, COLAB_RELEASE_TAG="x")
    last = done.stderr.strip().splitlines()[-1]
    assert done.returncode == 1 and last == (
        "ValueError: this notebook does not hold the course's address: "
        "write it into REPOSITORY above, as https://github.com/OWNER/NAME"
    )
    assert list(tmp_path.iterdir()) == []


def test_the_cell_is_short_and_carries_the_configured_address():
    source = cells.setup_source()
    assert f'REPOSITORY = "{repository()}"' in source.splitlines()
    assert len(source.splitlines()) <= 24 and max(map(len, source.splitlines())) <= 92
