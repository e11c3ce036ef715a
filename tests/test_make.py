"""The set-up: Makefile, locks, wheelhouse, and how pytest and nbval are configured."""

import importlib.metadata
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path
from types import ModuleType

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tiled_matmul import ROOT
from tiled_matmul.measure.suite import short_name

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
NEWEST_OWN = {"triton"}
COLAB_OWN = {"cuda-core", "llvmlite", "numba", "numba-cuda", "numpy", "triton"}


def load_tool(name: str) -> ModuleType:
    """Return tools/<name>.py as a module."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


wheelhouse = load_tool("wheelhouse")
LINUX = wheelhouse.target_environment("3.12")


def run(*command: str | Path, cwd: Path = ROOT, **environment: str) -> subprocess.CompletedProcess:
    """Run `command` without what the surrounding make or pytest put into the environment."""
    drop = ("MAKE", "MFLAGS", "PYTEST", "TILED_MATMUL", "OFFLINE", "NUMBA_ENABLE", "TRITON_INTER")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(drop)}
    return subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=kept | environment,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=120,
    )


# Locks


def test_the_lock_holds_what_the_project_declares():
    lock = wheelhouse.read_lock(ROOT / "requirements.lock")
    for name in ("browser", "cluster"):
        lock |= wheelhouse.read_lock(ROOT / f"requirements-{name}.lock")
    extras = PYPROJECT["project"]["optional-dependencies"]
    declared = PYPROJECT["project"]["dependencies"] + sum(extras.values(), [])
    for requirement in map(Requirement, declared):
        version = lock[canonicalize_name(requirement.name)]
        assert requirement.specifier.contains(version), requirement


def test_the_lock_is_complete():
    """Every need of every locked package is locked too, with a version that the need allows."""
    names = "requirements.lock", "requirements-colab.lock", "requirements-newest.lock"
    locks = [wheelhouse.read_lock(ROOT / name) for name in names]
    here = {canonicalize_name(d.name): d.version for d in importlib.metadata.distributions()}
    own = {name: here[name] for name in ("numba", "triton") if name in here}  # one is for Linux
    locked = next((lock for lock in locks if own.items() <= lock.items()), None)
    assert locked, f"no lock was installed here: {own}"
    for name in ("cuda", "browser", "cluster"):
        locked = wheelhouse.read_lock(ROOT / f"requirements-{name}.lock") | locked
    needs = {}
    for distribution in importlib.metadata.distributions():
        if (name := canonicalize_name(distribution.name)) in locked:
            # What an extra brings is not looked into, the package that offers it is.
            lines = distribution.requires or []
            needs[name] = [re.sub(r"\[[^]]*\]", "", line) for line in lines]
    # A CUDA build of torch, as the index has it, pins CUDA's packages itself; a CPU build has none.
    needs["torch"] = [line for line in needs["torch"] if not line.startswith(("cuda-", "nvidia-"))]
    assert len(needs) > 100
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    assert wheelhouse.problems(needs, locked, wheelhouse.target_environment(here)) == []


def test_colabs_lock_differs_only_where_colab_does():
    lock = wheelhouse.read_lock(ROOT / "requirements.lock")
    colab = wheelhouse.read_lock(ROOT / "requirements-colab.lock")
    assert lock.keys() == colab.keys()
    assert {name for name in lock if lock[name] != colab[name]} == COLAB_OWN


def test_the_newest_lock_differs_only_where_something_newer_works():
    lock = wheelhouse.read_lock(ROOT / "requirements.lock")
    newest = wheelhouse.read_lock(ROOT / "requirements-newest.lock")
    assert lock.keys() == newest.keys()
    assert {name for name in lock if lock[name] != newest[name]} == NEWEST_OWN
    text = (ROOT / "requirements-newest.lock").read_text(encoding="utf-8")
    assert text.startswith(load_tool("newest").HEAD) and text.count("#") == 4


def test_what_is_tried_anew_has_no_upper_bound_and_is_locked_without_a_mark():
    newest = load_tool("newest")
    lines = newest.wanted(PYPROJECT["project"])
    bounds = {Requirement(line).name: str(Requirement(line).specifier) for line in lines}
    assert not [name for name in newest.OPEN if "<" in bounds[name]]
    assert "2.5" not in Requirement(next(x for x in lines if x.startswith("numpy"))).specifier
    assert "<" in bounds["jsonschema"] and "jupyterlab" in bounds
    found = [{"name": "torch", "version": "2.13.0+cpu"}, {"name": "Jinja2", "version": "3.1"}]
    report = {"install": [{"metadata": each} for each in found]}
    assert newest.pins(report) == ["jinja2==3.1", "torch==2.13.0"]


# Wheelhouse


@pytest.mark.parametrize(
    ("line", "available", "says"),
    [
        ("tool>=2", {}, ["app needs tool>=2: not there"]),
        ("tool>=2", {"tool": "1.9"}, ["app needs tool>=2: 1.9 is there"]),
        ("tool>=2", {"tool": "2.0"}, []),
        ("tool>=2", {"tool": None}, []),
        ("Some.Tool", {"some-tool": "1"}, []),
        ("tool; sys_platform == 'win32'", {}, []),
        ("tool; extra == 'all'", {}, []),
        ("tool; python_version < '3.13'", {}, ["not there"]),
        ("tool[fast]", {"tool": "1"}, ["extras are not looked into"]),
    ],
)
def test_needs(line, available, says):
    found = wheelhouse.problems({"app": [line]}, available, LINUX)
    assert len(found) == len(says)
    assert all(part in whole for part, whole in zip(says, found, strict=True))


def make_wheel(folder: Path, name: str, version: str, *needs: str) -> None:
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    metadata += "".join(f"Requires-Dist: {need}\n" for need in needs)
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as archive:
        archive.writestr(f"{name}-{version}.dist-info/METADATA", metadata)


def test_a_complete_wheelhouse_passes(tmp_path):
    make_wheel(tmp_path, "app", "1.0", "tool>=2", "torch")
    make_wheel(tmp_path, "tool", "2.1")
    assert "2 wheels" in wheelhouse.check(tmp_path, ["torch"], "3.12")


@pytest.mark.parametrize(
    ("wheels", "limit_mb", "message"),
    [
        ([("app", "1.0", "tool>=2", "torch")], 99, "app needs tool>=2: not there"),
        ([], 99, "no wheel in"),
        ([("tool", "2.1"), ("tool", "2.2")], 99, "two wheels of tool"),
        ([("tool", "2.1")], 0, "more than 0 MB"),
    ],
)
def test_another_does_not(tmp_path, monkeypatch, wheels, limit_mb, message):
    monkeypatch.setattr(wheelhouse, "LIMIT_MB", limit_mb)
    for wheel in wheels:
        make_wheel(tmp_path, *wheel)
    with pytest.raises(wheelhouse.WheelhouseError, match=message):
        wheelhouse.check(tmp_path, ["torch"], "3.12")


def test_fetching_drops_what_is_not_wanted_and_keeps_what_is(tmp_path):
    make_wheel(tmp_path, "tool", "2.1")
    make_wheel(tmp_path, "tool", "2.0")
    make_wheel(tmp_path, "other", "1.0")
    wheelhouse.fetch(tmp_path, ["tool"], {"tool": "2.1"}, "3.12")
    assert [path.name for path in tmp_path.iterdir()] == ["tool-2.1-py3-none-any.whl"]
    with pytest.raises(wheelhouse.WheelhouseError, match=r"no line in requirements\.lock"):
        wheelhouse.fetch(tmp_path, ["unknown"], {"tool": "2.1"}, "3.12")


def test_what_the_wheelhouse_names_is_locked():
    lock = wheelhouse.read_lock(ROOT / "requirements.lock")
    settings = PYPROJECT["tool"]["wheelhouse"]
    assert set(settings["carried"]) <= lock.keys()
    # `make test-gpu` runs with workers there.
    assert {"pytest-xdist", "execnet"} <= set(settings["carried"])
    assert not set(settings["carried"]) & set(settings["present"])


# Makefile


@pytest.fixture
def checkout(tmp_path):
    """A folder in which make believes that the set-up is done."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    for name in ("chapters", "results", "tests", ".venv"):
        (tmp_path / name).mkdir()
    locks = [f"requirements{kind}.lock" for kind in ("", "-cuda", "-sandbox")]
    for name in (*locks, "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / ".venv/.installed").touch()
    return tmp_path


def test_help_names_every_target():
    done = run("make")
    assert done.returncode == 0, done.stderr
    targets = "book test lab serve test-gpu notebooks-gpu bench measure gpu-refresh size wheelhouse"
    for target in [*targets.split(), "test-colab", "test-newest"]:
        assert f"make {target} " in done.stdout


@pytest.mark.parametrize(("version", "runs"), [("3, 10", False), ("3, 11", True)])
def test_an_old_python_is_refused(checkout, version, runs):
    """A Python that gives out another version asks in one line for a newer one."""
    (checkout / ".venv/.installed").unlink()
    fake = checkout / "python"
    fake.write_text(
        f"#!/bin/sh\n[ $1 = --version ] && echo Python {version.replace(', ', '.')} || "
        f'{sys.executable} -c "import sys; sys.version_info = ({version}, 0); $2"\n'
    )
    fake.chmod(0o755)
    done = run("make", "-n", "test", "PYTHON=./python", cwd=checkout)
    if runs:
        assert "pip install" in done.stdout
    else:
        assert done.returncode == 2
        assert len(done.stderr.splitlines()) == 1
        assert "needs Python 3.11 or newer, and ./python is Python 3.10" in done.stderr


def test_a_missing_python_is_named(checkout):
    (checkout / ".venv/.installed").unlink()
    done = run("make", "test", "PYTHON=no-such-python", cwd=checkout)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "no-such-python is not there" in done.stderr


@pytest.mark.parametrize("target", ["test", "test-gpu", "notebooks-gpu"])
def test_no_chapters_is_an_error(checkout, target):
    done = run("make", "-n", target, cwd=checkout)
    assert done.returncode == 2
    assert "chapters/ holds no notebook" in done.stderr


def test_no_gpu_tests_is_an_error(checkout):
    (checkout / "chapters/01.ipynb").touch()
    done = run("make", "-n", "test-gpu", cwd=checkout)
    assert done.returncode == 2
    assert "no file in tests/ has a test marked gpu" in done.stderr


def test_gpu_tests_share_the_gpu_but_for_those_that_need_it_alone(checkout):
    (checkout / "chapters/01.ipynb").touch()
    (checkout / "tests/test_x.py").write_text("# mark.gpu\n")
    done = run("make", "-n", "test-gpu", "GPU_JOBS=12", cwd=checkout)
    tests, chapters, alone = [line for line in done.stdout.splitlines() if "pytest" in line]
    assert '-m "gpu and not alone" -n 12 --dist worksteal tests/test_x.py' in tests
    assert "--nbval -n 6 --dist loadfile chapters/01.ipynb" in chapters
    assert '-m "gpu and alone" -n 0 tests/test_x.py' in alone


@pytest.mark.parametrize(
    "target", ["test", "book", "lab", "wheelhouse", "test-colab", "test-newest"]
)
def test_offline_is_refused_where_a_network_is_needed(checkout, target):
    done = run("make", "-n", target, "OFFLINE=1", cwd=checkout)
    assert done.returncode == 2
    assert "OFFLINE=1 is for" in done.stderr


def test_the_second_call_sets_nothing_up(checkout):
    (checkout / "chapters/01.ipynb").touch()
    assert "pip" not in run("make", "-n", "test", cwd=checkout).stdout
    os.utime(checkout / "requirements.lock", (2**32, 2**32))
    assert "pip install" in run("make", "-n", "test", cwd=checkout).stdout


@pytest.mark.parametrize(("command", "status"), [("echo", 0), ("./fail", 2)])
def test_gpu_refresh_packs_what_there_is_and_tells_the_truth(checkout, command, status):
    """Also when a step fails: a GPU machine's time is not thrown away, and the status is kept."""
    fails = "#!/bin/sh\necho it fails; case $3 in doctor) ;; *) exit 3; esac\n"
    (checkout / "fail").write_text(fails)
    (checkout / "fail").chmod(0o755)
    (checkout / "chapters/01.ipynb").touch()
    (checkout / "tests/test_x.py").write_text("# mark.gpu\n")
    done = run("make", "gpu-refresh", f"RUN={command}", cwd=checkout)
    assert done.returncode == status, done.stderr
    with tarfile.open(checkout / "_artifacts/gpu-refresh.tar.gz") as packed:
        names = packed.getnames()
    assert "chapters/01.ipynb" in names
    logs = {Path(name).stem for name in names if name.endswith(".log")}
    if status == 0:
        assert logs == {"doctor", "measure", "notebooks-gpu", "test-gpu"}
    else:
        assert logs == {"doctor", "measure"}
        assert "make measure failed" in done.stderr


def test_results_are_named_after_the_gpu():
    gpus = "NVIDIA H200", "NVIDIA GeForce RTX 4090", "Tesla T4", "NVIDIA A100-SXM4-80GB"
    names = list(map(short_name, gpus))
    assert names == ["h200", "rtx-4090", "t4", "a100-sxm4-80gb"]


# pytest and nbval, without the plugins that the test is not about: they take a second to load

PYTEST = (sys.executable, "-m", "pytest", "-p", "pytest_timeout")
NO_PLUGINS = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}


def pytest_on_marked_test(tmp_path: Path, *options: str, **environment: str):
    """Run a gpu test that fails wherever it runs, and a plain one, under tests/conftest.py."""
    shutil.copy(ROOT / "tests" / "conftest.py", tmp_path)
    (tmp_path / "test_it.py").write_text(
        "import pytest\n@pytest.mark.gpu\ndef test_gpu(): assert False\ndef test_cpu(): pass\n"
        "@pytest.mark.skipif(True, reason='no sandbox')\ndef test_sandbox(): assert False\n"
        "@pytest.mark.long\n@pytest.mark.parametrize('i', range(2))\ndef test_long(i): pass\n"
        "@pytest.mark.sample(3)\n@pytest.mark.parametrize('i', range(5))\ndef test_many(i): pass\n"
    )
    command = (*PYTEST, "-p", "xdist", "-c", ROOT / "pyproject.toml")
    return run(*command, "--rootdir", tmp_path, *options, tmp_path, **environment, **NO_PLUGINS)


@pytest.mark.parametrize("workers", ["0", "1"])
@pytest.mark.sample(2)
def test_what_was_not_run_is_counted_by_reason(tmp_path, workers):
    file = tmp_path / "not_run.txt"
    settings = {"TILED_MATMUL_BACKEND": "simulator", "TILED_MATMUL_NOT_RUN": str(file)}
    done = pytest_on_marked_test(tmp_path, "-n", workers, **settings)
    line = "Not run: 1 (no GPU), 1 (no sandbox). Every other test passed."
    assert done.returncode == 0 and file.read_text() == f"{line}\n", done.stdout
    assert f"8 passed, 1 skipped{', 1 deselected' * (workers == '0')}" in done.stdout
    settings["TILED_MATMUL_LONG"] = "0"
    done = pytest_on_marked_test(tmp_path, "-n", workers, **settings)
    line = "Not run: 5 (make test-long), 1 (no GPU), 1 (no sandbox). Every other test passed."
    assert done.returncode == 0 and file.read_text() == f"{line}\n", done.stdout
    assert f"3 passed, 1 skipped{', 6 deselected' * (workers == '0')}" in done.stdout


def test_gpu_tests_alone_never_pass_without_a_gpu(tmp_path):
    """No GPU is visible here, whatever the machine has."""
    hidden = {"CUDA_VISIBLE_DEVICES": ""}
    done = pytest_on_marked_test(tmp_path, "-m", "gpu", **hidden)
    assert done.returncode == pytest.ExitCode.NO_TESTS_COLLECTED
    done = pytest_on_marked_test(tmp_path, "-m", "gpu", **hidden, TILED_MATMUL_BACKEND="gpu")
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "TILED_MATMUL_BACKEND=gpu demands a GPU" in done.stderr
    assert "Traceback" not in done.stderr


def judge(folder: Path, cells: list[tuple[str, str]], *options: str) -> list[str]:
    """Judge a notebook of these cells as the chapters are judged; return each cell's outcome.

    A cell is (its source, its stored output).
    """
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = {"nbformat": 4, "nbformat_minor": 5, "metadata": {"kernelspec": kernel}}
    notebook["cells"] = [
        {
            **{"cell_type": "code", "id": f"cell-{number}", "metadata": {}, "source": source},
            "execution_count": number + 1,
            "outputs": [{"output_type": "stream", "name": "stdout", "text": stored}],
        }
        for number, (source, stored) in enumerate(cells)
    ]
    file = folder / "judged.ipynb"
    file.write_text(json.dumps(notebook))
    settings = ROOT / "tests/notebooks/nbval.ini"
    command = (*PYTEST, "-p", "nbval.plugin", "-c", settings, "--rootdir", folder, "-rA")
    done = run(*command, *options, file, **NO_PLUGINS)
    verdict = r"^(PASSED|FAILED|ERROR) \S*judged\.ipynb::Cell (\d+)"
    outcomes = {int(cell): outcome for outcome, cell in re.findall(verdict, done.stdout, re.M)}
    assert sorted(outcomes) == list(range(len(cells))), done.stdout + done.stderr
    assert done.returncode == any(outcome != "PASSED" for outcome in outcomes.values())
    return [outcomes[number] for number in range(len(cells))]


def test_strict_nbval_compares_every_output_and_stops_a_cell_that_hangs(tmp_path):
    hangs = "import time; time.sleep(600)"
    cells = [("print(2)", "2\n"), ("print(2.50)", "2.51\n"), (hangs, "")]
    outcomes = judge(tmp_path, cells, "--nbval", "--nbval-cell-timeout=2")
    assert outcomes == ["PASSED", "FAILED", "FAILED"]


def test_lax_nbval_compares_marked_cells_and_reports_errors(tmp_path):
    marked = "# NBVAL_CHECK_OUTPUT\nprint(2.50)"
    cells = [("print(2)", "3\n"), (marked, "2.5\n"), (marked, "2.51\n")]
    cells += [("print(1); 1 / 0", "1\n")]
    assert judge(tmp_path, cells, "--nbval-lax") == ["PASSED", "PASSED", "FAILED", "FAILED"]


def test_size_counts_by_room_and_since_a_commit(tmp_path):
    size = load_tool("size")
    assert size.room_of("src/tiled_matmul/kit/launch.py") == "src/tiled_matmul/kit"
    assert size.room_of("src/tiled_matmul/page.py") == "src/tiled_matmul"
    assert size.room_of("exercises/source/01_loops/1_x/hints.md") == "exercises/source"
    assert size.room_of("tools/size.py") == "tools"
    for other in ("README.md", "chapters/01.ipynb", "src/tiled_matmul/book/js/a.js"):
        assert size.room_of(other) is None
    assert size.lines("a\n\n  \nb") == 2
    for command in (
        ["init", "-q"],
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "a"],
    ):
        subprocess.run(["git", "-C", tmp_path, *command], check=True)
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "a.py").write_text("x = 1\n\ny = 2\n")
    size.ROOT = tmp_path
    assert size.now() == {"tools": 2} and size.at("HEAD") == {}
    assert size.main(["HEAD"]) == 0 and size.main(["nothing"]) == 1
