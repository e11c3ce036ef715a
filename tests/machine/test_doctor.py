import dataclasses
import json
import re
import subprocess
import sys

import pytest

from tiled_matmul import ROOT
from tiled_matmul.machine import backend, doctor
from tiled_matmul.machine.doctor import Assessment, Facts, MachineReport, Trial, judge

GOOD = {
    "numpy": "2.4.6",
    "numba": "0.68.1",
    "numba-cuda": "0.30.4",
    "torch": "2.13.0+cpu",
    "triton": "3.7.1",
    "matplotlib": "3.10.0",
    "rich": "15.0.0",
    "threadpoolctl": "3.8.0",
    "nbval": "0.11.0",
    "jupyter-book": "1.0.4.post1",
}
TRIED = {
    "backend": Trial(True, "as it should be"),
    "numba compiles": Trial(True),
    "numba launches": Trial(True),
    "triton launches": Trial(True),
}
LAPTOP = Facts(
    python=(3, 11, 7),
    system="Linux 6.1 (x86_64)",
    cpu="Example",
    cpu_threads=8,
    versions=GOOD,
    backend="simulator",
    bwrap="bubblewrap 0.11.0, /usr/bin/bwrap",
    trials=TRIED,
)
SERVER = dataclasses.replace(
    LAPTOP,
    versions=GOOD | {"torch": "2.11.0+cu130", "triton": "3.6.0"},
    gpu="NVIDIA H200",
    capability=(9, 0),
    driver="580.95.05",
    driver_cuda="13.0",
    torch_cuda="13.0",
    backend="gpu",
)
COLAB = dataclasses.replace(
    SERVER,
    versions={
        **GOOD,
        "torch": "2.11.0+cu128",
        "triton": "3.6.0",
        "numba": "0.61.2",
        "numba-cuda": "0.22.2",
        "numpy": "2.1.3",
        "nbval": None,
        "jupyter-book": None,
    },
    gpu="Tesla T4",
    capability=(7, 5),
    driver_cuda="12.8",
    torch_cuda="12.8",
    colab="release-colab_20260801",
)


def troubles(facts, level=None):
    return [f for f in judge(facts) if f.level != "ok" and level in (None, f.level)]


def the_error(facts):
    """The one error among the findings."""
    errors = troubles(facts, "error")
    assert len(errors) == 1, errors
    return errors[0]


def with_versions(facts, **versions):
    renamed = {name.replace("_", "-"): version for name, version in versions.items()}
    return dataclasses.replace(facts, versions={**facts.versions, **renamed})


def with_trials(facts, **trials):
    renamed = {name.replace("_", " "): trial for name, trial in trials.items()}
    return dataclasses.replace(facts, trials={**facts.trials, **renamed})


NEW_NUMPY = with_versions(LAPTOP, triton="3.6.0", numpy="2.4.6")


@pytest.mark.parametrize(
    "facts",
    [
        LAPTOP,
        SERVER,
        # Within one major version, drivers run what was built for a later minor one.
        dataclasses.replace(SERVER, torch_cuda="13.2"),
        with_versions(NEW_NUMPY, numpy="2.3.5"),
        with_versions(SERVER, triton="3.6.0", numpy="2.4.6"),
    ],
)
def test_a_good_machine_has_no_trouble(facts):
    assert troubles(facts) == []
    assert MachineReport(facts, tuple(judge(facts))).ok


def test_colab_runs_as_it_is_and_is_told_not_to_upgrade():
    (nbval,) = troubles(COLAB)
    assert (nbval.topic, nbval.level, nbval.fix) == ("nbval", "warning", "pip install nbval")
    (colab,) = [finding for finding in judge(COLAB) if finding.topic == "Colab"]
    assert "never to be upgraded" in colab.text and "first cell" in colab.fix


@pytest.mark.parametrize("facts", [LAPTOP, SERVER])
@pytest.mark.parametrize(
    ("package", "version", "says", "fix"),
    [
        ("numpy", "2.5.2", "row_stack", 'pip install "numpy>=2.1,<2.5"'),
        ("numpy", "2.0.2", "outside the range", 'pip install "numpy>=2.1,<2.5"'),
        ("numpy", None, "not installed", 'pip install "numpy>=2.1,<2.5"'),
        ("triton", "3.10.0", "outside the range", 'pip install "triton>=3.6,<3.10"'),
        ("triton", "3.5.1", "outside the range", 'pip install "triton>=3.6,<3.10"'),
        ("triton", None, "not installed", 'pip install "triton>=3.6,<3.10"'),
        ("torch", "2.15.0", "outside the range", 'pip install "torch>=2.11,<2.15"'),
        ("torch", "2.9.1+cu130", "outside the range", 'pip install "torch>=2.11,<2.15"'),
        ("torch", None, "not installed", 'pip install "torch>=2.11,<2.15"'),
        ("numba-cuda", "0.20.0", "outside the range", 'pip install "numba-cuda>=0.22"'),
        ("numba", "0.60.0", "outside the range", 'pip install "numba>=0.61"'),
        ("rich", None, "not installed", "pip install rich"),
    ],
)
def test_a_version_that_does_not_do_is_an_error_with_its_mend(facts, package, version, says, fix):
    facts = dataclasses.replace(facts, versions={**facts.versions, package: version})
    error = the_error(facts)
    assert error.topic == package
    assert says in error.text
    assert error.fix == fix


@pytest.mark.parametrize("version", ["2.10.0", "2.9.9", "3.0"])
def test_versions_compare_as_numbers(version):
    assert the_error(with_versions(LAPTOP, numpy=version)).topic == "numpy"


ALONE = "is not installed; plain numba falls back on an old numba.cuda of its own"
FIX = 'pip install "numba-cuda[cu13]>=0.22"'
OLD_GPU = dataclasses.replace(SERVER, gpu="Tesla V100", capability=(7, 0))
OLD_DRIVER = dataclasses.replace(SERVER, driver="550.54", driver_cuda="12.4")
NO_GCC = Trial(False, "RuntimeError: Failed to find C compiler. Please specify via CC")
NO_COMPILE = with_trials(SERVER, numba_compiles=Trial(False, "TypeError: something else"))
TORCH = with_trials(LAPTOP, torch=Trial(False, "ImportError: libfoo.so"))
SIMULATE = "set TILED_MATMUL_BACKEND=simulator"
# A Mac lacks numba-cuda and a compiler for kernels. That it lacks Triton is a case of its own.
MAC = with_trials(with_versions(LAPTOP, numba_cuda=None), numba_compiles=Trial(False, "no libnvvm"))
MAC = dataclasses.replace(MAC, system="Darwin 25 (arm64)")
TROUBLES = [
    (with_versions(SERVER, numba_cuda=None), "error", "numba-cuda", ALONE, FIX),
    (with_versions(LAPTOP, numba_cuda=None), "warning", "numba-cuda", ALONE, FIX),
    (NO_COMPILE, "error", "Numba", "a kernel does not compile: TypeError: something else", ""),
    (with_trials(SERVER, triton_launches=NO_GCC), "error", "Triton", "C compiler", "gcc"),
    (OLD_DRIVER, "error", "driver", "550.54 supports CUDA 12.4, torch was built for CUDA 13.0",
     "update the NVIDIA driver"),
    (OLD_GPU, "error", "GPU", "compute capability 7.0", SIMULATE),
    (dataclasses.replace(OLD_GPU, backend="simulator", versions=GOOD),
     "warning", "GPU", "compute capability 7.0", SIMULATE),
    (NEW_NUMPY, "error", "Triton", "the interpreter of triton 3.6.0 fails with numpy 2.4.6",
     'pip install "triton==3.7.1"'),
    (TORCH, "error", "torch", "libfoo.so", "pip install --force-reinstall"),
    (dataclasses.replace(LAPTOP, python=(3, 10, 4)), "error", "Python", "3.10.4", "Python 3.11"),
    (dataclasses.replace(LAPTOP, bwrap=None), "warning", "sandbox", "no bubblewrap",
     "apt install bubblewrap"),
    (dataclasses.replace(LAPTOP, colab="release"), "warning", "Colab", "without a GPU",
     "Change runtime type"),
    (dataclasses.replace(with_versions(LAPTOP, triton=None), system="Darwin 25 (arm64)"),
     "warning", "triton", "Linux only", ""),
    (dataclasses.replace(MAC, bwrap=None), "warning", "sandbox", "no bubblewrap", ""),
]  # fmt: skip


@pytest.mark.parametrize(("facts", "level", "topic", "says", "fix"), TROUBLES)
def test_a_trouble_is_alone_and_has_its_fix(facts, level, topic, says, fix):
    (found,) = troubles(facts)
    assert (found.level, found.topic) == (level, topic)
    assert says in found.text and fix in found.fix and bool(fix) == bool(found.fix)
    assert MachineReport(facts, (found,)).ok == (level == "warning")


@pytest.mark.parametrize(
    "message",
    [
        "numba.cuda.cudadrv.error.NvvmSupportError: libNVVM is not available",
        'DynamicLibNotFoundError: Failure finding "libnvvm.so"',
    ],
)
def test_no_nvvm(message):
    broken = Trial(False, message)
    error = the_error(with_trials(SERVER, numba_compiles=broken))
    assert error.topic == "Numba" and "no NVVM" in error.text and message in error.text
    assert error.fix == 'pip install "numba-cuda[cu13]"'
    assert the_error(with_trials(COLAB, numba_compiles=broken)).fix.endswith('[cu12]"')
    # The simulator does without.
    (warning,) = troubles(with_trials(LAPTOP, numba_compiles=broken))
    assert warning.level == "warning"


@pytest.mark.parametrize("facts", [LAPTOP, SERVER])
@pytest.mark.parametrize("package", ["numba", "triton"])
def test_a_kernel_that_does_not_run_is_an_error(facts, package):
    message = "AttributeError: no such thing"
    facts = with_trials(facts, **{f"{package}_launches": Trial(False, message)})
    error = the_error(facts)
    assert error.topic.lower() == package and message in error.text


def test_a_cpu_build_of_torch_on_a_gpu_machine():
    facts = dataclasses.replace(
        with_versions(SERVER, torch="2.13.0+cpu"), torch_cuda=None, backend="simulator"
    )
    (finding,) = [f for f in troubles(facts) if f.topic == "torch"]
    assert "CPU build" in finding.text and finding.fix.startswith("pip install")


def test_a_back_end_that_is_demanded_and_not_there():
    message = "BackendError: TILED_MATMUL_BACKEND=gpu demands a GPU"
    facts = dataclasses.replace(with_trials(LAPTOP, backend=Trial(False, message)), backend=None)
    assert message in the_error(facts).text


def test_every_error_comes_first_and_fails_the_report():
    facts = with_versions(LAPTOP, numpy="2.5.0", nbval=None)
    report = MachineReport(facts, tuple(judge(facts)))
    levels = [finding.level for finding in report.findings]
    assert levels[:2] == ["error", "warning"] and set(levels[2:]) == {"ok"}
    assert not report.ok
    assert "cannot run here" in report.as_text()
    assert '→ pip install "numpy>=2.1,<2.5"' in report.as_text()
    assert json.loads(report.as_json())["ok"] is False


def test_each_mend_is_one_line():
    report = MachineReport(LAPTOP, (Assessment("error", "x", "y", "one line"),))
    assert report.as_text().count("→") == 1


def test_the_ranges_are_those_of_pyproject():
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = {}
    for line in project["dependencies"]:
        name, limits = re.fullmatch(r"([\w-]+)([^;]*)(?:;.*)?", line).groups()
        declared[name] = limits.strip()
    for package, (low, high) in doctor.RANGES.items():
        assert declared[package] == f">={low}" + (f",<{high}" if high else ""), package
    assert project["requires-python"] == ">=" + ".".join(map(str, doctor.PYTHON))


@pytest.mark.parametrize(
    ("program", "ok", "text"),
    [
        ("print('one'); print('two')", True, "two"),
        ("raise ValueError('no\\nno')", False, "ValueError: no"),
        ("import sys; sys.exit(3)", False, "ended with status 3"),
        ("import os; os.abort()", False, "ended with status -6"),
        ("import no_such_package", False, "ModuleNotFoundError: No module named 'no_such_package'"),
    ],
)
def test_an_attempt_never_raises(program, ok, text):
    assert doctor._attempt(program) == Trial(ok, text)


def test_an_attempt_that_hangs_is_ended(monkeypatch):
    monkeypatch.setattr(doctor, "PATIENCE_S", 0.5)
    trial = doctor._attempt("import time; time.sleep(60)")
    assert trial == Trial(False, "not finished after 0.5 s")


def test_the_doctor_outlives_broken_packages(tmp_path):
    for package in ("torch", "numba", "numpy", "rich"):
        (tmp_path / f"{package}.py").write_text("raise RuntimeError('broken on purpose')")
    done = subprocess.run(
        [sys.executable, "-m", "tiled_matmul", "doctor", "--json"],
        env={"PYTHONPATH": f"{tmp_path}:{ROOT / 'src'}", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1, done.stderr
    report = json.loads(done.stdout)
    assert report["ok"] is False
    broken = {f["topic"] for f in report["findings"] if "broken on purpose" in f["text"]}
    assert {"torch", "numba", "numpy"} <= broken


@pytest.mark.long
def test_this_machine(capsys):
    """The tests' own environment is one that the course runs in."""
    from tiled_matmul.__main__ import main

    status = main(["doctor"])
    text = capsys.readouterr().out
    assert status == 0, text
    assert f"back end: {backend.select().name}" in text
    assert "a kernel ran" in text
