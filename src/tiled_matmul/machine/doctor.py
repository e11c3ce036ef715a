"""Check whether the course can run on this machine; for each obstacle, name a fix in one line.

`gather` collects facts and tries each package in a separate process, so that a missing or broken
one is reported and crashes nothing. `judge` assesses the facts; it depends on nothing else.
"""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path

from tiled_matmul import ROOT, __version__
from tiled_matmul.machine import backend, device, sandbox

# As declared in pyproject.toml: (lowest version that works, lowest later one that does not).
RANGES: dict[str, tuple[str, str | None]] = {
    "numpy": ("2.1", "2.5"),
    "numba": ("0.61", None),
    "numba-cuda": ("0.22", None),
    "torch": ("2.11", "2.15"),
    "triton": ("3.6", "3.10"),
}
OTHERS = ("matplotlib", "rich", "threadpoolctl", "nbval", "jupyter-book")
PYTHON = (3, 11)
LOWEST_CAPABILITY = (7, 5)
PATIENCE_S = 180

MARK = {"ok": "ok      ", "warning": "warning ", "error": "ERROR   "}


@dataclass(frozen=True)
class Assessment:
    """The state of one topic: `level` is "ok", "warning" or "error"; `fix` is one line or empty."""

    level: str
    topic: str
    text: str
    fix: str = ""


@dataclass(frozen=True)
class Trial:
    """The outcome of a program in a separate process; `text` is its last line, or its error."""

    ok: bool
    text: str = ""


@dataclass(frozen=True)
class Facts:
    """The facts about a machine that `judge` assesses.

    `versions` maps a package to its version, or to None if it is not installed. `trials` maps a
    name to its outcome; "backend" is the choice of the back end, with the reason or the error.
    """

    python: tuple[int, int, int]
    system: str
    cpu: str
    cpu_threads: int
    versions: Mapping[str, str | None]
    gpu: str | None = None
    capability: tuple[int, int] | None = None
    driver: str = ""
    driver_cuda: str | None = None
    torch_cuda: str | None = None
    colab: str | None = None
    backend: str | None = None
    bwrap: str | None = None
    trials: Mapping[str, Trial] = field(default_factory=dict)

    @property
    def on_linux(self) -> bool:
        return self.system.startswith("Linux")


@dataclass(frozen=True)
class MachineReport:
    """The facts and what they mean."""

    facts: Facts
    findings: tuple[Assessment, ...]

    @property
    def ok(self) -> bool:
        """Whether the course can run on this machine."""
        return not any(finding.level == "error" for finding in self.findings)

    def as_json(self) -> str:
        content = {
            "ok": self.ok,
            "tiled_matmul": __version__,
            "machine": asdict(self.facts),
            "findings": [asdict(finding) for finding in self.findings],
        }
        return json.dumps(content, indent=2, ensure_ascii=False)

    def as_text(self) -> str:
        lines = [f"Tiled Matmul {__version__}, in {ROOT}", *_machine(self.facts), ""]
        for finding in self.findings:
            lines.append(f"{MARK[finding.level]}{finding.topic}: {finding.text}")
            if finding.fix:
                lines.append(f"{' ' * len(MARK['ok'])}→ {finding.fix}")
        verdict = "The course can run here." if self.ok else "The course cannot run here yet."
        return "\n".join([*lines, "", verdict])


def examine() -> MachineReport:
    """Return the report on this machine; takes seconds, because it runs kernels."""
    facts = gather()
    return MachineReport(facts, tuple(judge(facts)))


def judge(facts: Facts) -> list[Assessment]:
    """Return the assessments of the facts, errors first."""
    findings = [
        *_python(facts),
        *_backend(facts),
        *_versions(facts),
        *_numba(facts),
        *_triton(facts),
        *_notebooks(facts),
        *_sandbox(facts),
        *_colab(facts),
    ]
    order = ("error", "warning", "ok")
    return sorted(findings, key=lambda finding: order.index(finding.level))


def _python(facts: Facts) -> list[Assessment]:
    text = ".".join(str(part) for part in facts.python)
    if facts.python[:2] < PYTHON:
        lowest = ".".join(str(part) for part in PYTHON)
        fix = f"install Python {lowest}"
        return [Assessment("error", "Python", f"{text}, {lowest} is needed", fix)]
    return [Assessment("ok", "Python", text)]


def _backend(facts: Facts) -> list[Assessment]:
    chosen = facts.trials.get("backend", Trial(False, "the choice of a back end was not tried"))
    simulate = f"{backend.OVERRIDE}=simulator"
    # The simulators need no usable GPU.
    unusable = "warning" if facts.backend == "simulator" else "error"
    findings = []
    if facts.gpu and facts.capability and facts.capability < LOWEST_CAPABILITY:
        have, need = (".".join(map(str, c)) for c in (facts.capability, LOWEST_CAPABILITY))
        text = f"{facts.gpu} has compute capability {have}; Triton and CUDA 13 need {need}"
        findings.append(Assessment(unusable, "GPU", text, f"set {simulate}"))
    elif facts.gpu and facts.versions.get("torch") and facts.torch_cuda is None:
        if facts.trials.get("torch", Trial(True)).ok:
            text = f"{facts.gpu} is there, but torch {facts.versions['torch']} is a CPU build"
            fix = 'pip install --force-reinstall "torch>=2.11,<2.15"'
            findings.append(Assessment(unusable, "torch", text, fix))
    elif (
        facts.driver_cuda
        and facts.torch_cuda
        and _major(facts.torch_cuda) > _major(facts.driver_cuda)
    ):
        text = (
            f"{facts.driver or 'the driver'} supports CUDA {facts.driver_cuda}, torch was built "
            f"for CUDA {facts.torch_cuda}: the driver is too old"
        )
        fix = f"update the NVIDIA driver, or install torch for CUDA {_major(facts.driver_cuda)}"
        findings.append(Assessment(unusable, "driver", text, fix))
    if not chosen.ok:
        return [*findings, Assessment("error", "back end", chosen.text, f"or set {simulate}")]
    return [*findings, Assessment("ok", "back end", f"{facts.backend}: {chosen.text}")]


def _versions(facts: Facts) -> list[Assessment]:
    findings = []
    for package, (low, high) in RANGES.items():
        version = facts.versions.get(package)
        requirement = f"{package}>={low}" + (f",<{high}" if high else "")
        fix = f'pip install "{requirement}"'
        if version is None:
            if package in ("numba-cuda", "triton"):
                continue  # assessed by _numba and _triton
            findings.append(Assessment("error", package, "is not installed", fix))
        elif package == "numpy" and _release(version) >= _release("2.5"):
            text = f"{version} lacks row_stack, without which numba-cuda compiles no kernel"
            findings.append(Assessment("error", package, text, fix))
        elif not _release(low) <= _release(version) < (_release(high) if high else (10**6,)):
            text = f"{version} is outside the range that the course was written for ({requirement})"
            findings.append(Assessment("error", package, text, fix))
        else:
            findings.append(Assessment("ok", package, version))
        trial = facts.trials.get(package)
        if version is not None and trial is not None and not trial.ok:
            text = f"{version} is installed but cannot be imported: {trial.text}"
            fix = f'pip install --force-reinstall "{requirement}"'
            findings.append(Assessment("error", package, text, fix))
    for package in ("rich", "threadpoolctl", "matplotlib"):
        if facts.versions.get(package) is None:
            fix = f"pip install {package}"
            findings.append(Assessment("error", package, "is not installed", fix))
    return findings


def _numba(facts: Facts) -> list[Assessment]:
    on_gpu = facts.backend == "gpu"
    findings = []
    if facts.on_linux and facts.versions.get("numba") and facts.versions.get("numba-cuda") is None:
        text = "is not installed; plain numba falls back on an old numba.cuda of its own"
        fix = 'pip install "numba-cuda[cu13]>=0.22"'
        level = "error" if on_gpu else "warning"
        findings.append(Assessment(level, "numba-cuda", text, fix))
    compiled = facts.trials.get("numba compiles")
    if not facts.on_linux:
        text = "kernels run in the interpreter; numba-cuda, which compiles them, is for Linux"
        findings.append(Assessment("ok", "numba-cuda", text))
    elif compiled is not None and not compiled.ok:
        nvvm = bool(re.search("nvvm|nvrtc|cudart|libdevice|DynamicLib", compiled.text, re.I))
        fault = "no NVVM, so no kernel can be compiled" if nvvm else "a kernel does not compile"
        cuda = _major(facts.driver_cuda) if facts.driver_cuda else 13
        fix = f'pip install "numba-cuda[cu{max(12, min(cuda, 13))}]"' if nvvm else ""
        level = "error" if on_gpu else "warning"
        findings.append(Assessment(level, "Numba", f"{fault}: {compiled.text}", fix))
    elif compiled is not None:
        findings.append(Assessment("ok", "Numba", "compiles a kernel to PTX"))
    launched = facts.trials.get("numba launches")
    if launched is not None:
        where = "on the GPU" if on_gpu else "in the interpreter"
        if launched.ok:
            findings.append(Assessment("ok", "Numba", f"a kernel ran {where}, and was right"))
        else:
            text = f"a kernel does not run {where}: {launched.text}"
            findings.append(Assessment("error", "Numba", text))
    return findings


def _triton(facts: Facts) -> list[Assessment]:
    version, numpy = facts.versions.get("triton"), facts.versions.get("numpy")
    where = "on the GPU" if facts.backend == "gpu" else "in its interpreter"
    if version is None:
        text = "is not installed; the chapters on Triton need it"
        if facts.on_linux:
            return [Assessment("error", "triton", text, 'pip install "triton>=3.6,<3.10"')]
        return [Assessment("warning", "triton", f"{text}, and it exists for Linux only")]
    interpreted = facts.backend == "simulator"
    old = _release(version)[:2] == (3, 6) and numpy and _release(numpy) >= _release("2.4")
    if interpreted and old:
        text = f"the interpreter of triton {version} fails with numpy {numpy}"
        return [Assessment("error", "Triton", text, 'pip install "triton==3.7.1"')]
    trial = facts.trials.get("triton launches")
    if trial is None:
        return []
    if trial.ok:
        return [Assessment("ok", "Triton", f"a kernel ran {where}, and was right")]
    compiler = re.search(r"C compiler|gcc|Python\.h", trial.text)
    fix = "apt-get install gcc python3-dev" if compiler else ""
    return [Assessment("error", "Triton", f"a kernel does not run {where}: {trial.text}", fix)]


def _notebooks(facts: Facts) -> list[Assessment]:
    if facts.versions.get("nbval") is None:
        text = "is not installed, so notebooks cannot be validated"
        return [Assessment("warning", "nbval", text, "pip install nbval")]
    return [Assessment("ok", "nbval", str(facts.versions["nbval"]))]


def _sandbox(facts: Facts) -> list[Assessment]:
    if facts.bwrap is not None:
        return [Assessment("ok", "sandbox", facts.bwrap)]
    text = "no bubblewrap: only your own answers should be graded here"
    fix = "apt install bubblewrap" if facts.on_linux else ""
    return [Assessment("warning", "sandbox", text, fix)]


def _colab(facts: Facts) -> list[Assessment]:
    if facts.colab is None:
        return []
    if facts.gpu is None:
        text = f"this is Colab ({facts.colab}), without a GPU"
        fix = "Runtime → Change runtime type → T4 GPU, then run the set-up cell again"
        return [Assessment("warning", "Colab", text, fix)]
    text = f"this is Colab ({facts.colab}); its preinstalled packages are never to be upgraded"
    return [Assessment("ok", "Colab", text, "run a chapter's first cell: it installs the course")]


def gather() -> Facts:
    """Return the facts about this machine. No missing or broken package makes it raise."""
    gpu, _ = backend.probe_gpu()
    names = (*RANGES, *OTHERS)
    imported = [package for package in ("numpy", "torch", "numba") if _version(package)]
    programs = {"backend": _CHOOSE} | {package: f"import {package}" for package in imported}
    if "torch" in imported:
        programs["torch"] += "; print(torch.version.cuda or '')"
    trials, chosen, torch_cuda = _attempts(programs), None, None
    if trials["backend"].ok:
        chosen, _, sentence = trials["backend"].text.partition(":")
        trials["backend"] = Trial(True, sentence)
    works = {name for name, trial in trials.items() if trial.ok}
    if "torch" in works:
        torch_cuda, trials["torch"] = trials["torch"].text or None, Trial(True, "")
    programs = {}
    if "numba" in works:
        programs["numba compiles"] = _COMPILE.format(capability=gpu.capability if gpu else (8, 0))
        if chosen:
            programs["numba launches"] = _LAUNCH
            if _version("triton") and "torch" in works:
                device_name = "cuda" if chosen == "gpu" else "cpu"
                programs["triton launches"] = _TRITON.format(device=device_name)
    trials |= _attempts(programs)
    return Facts(
        python=sys.version_info[:3],
        system=f"{platform.system()} {platform.release()} ({platform.machine()})",
        cpu=device.cpu_name(),
        cpu_threads=device.cpu_threads(),
        versions={name: _version(name) for name in names},
        gpu=gpu.name if gpu else None,
        capability=gpu.capability if gpu else None,
        driver=device.driver_version(),
        driver_cuda=gpu.driver_cuda if gpu else None,
        torch_cuda=torch_cuda,
        colab=os.environ.get("COLAB_RELEASE_TAG"),
        backend=chosen,
        bwrap=sandbox.describe() if sandbox.find_bwrap() else None,
        trials=trials,
    )


# The programs that `gather` runs, each in a separate process; the last line printed is the result.
_CHOOSE = """
import os
from tiled_matmul.machine import backend
chosen = backend.decide(os.environ.get(backend.OVERRIDE))
print(f"{chosen.name}:{chosen.reason}")
"""
_COMPILE = """
import os
os.environ["NUMBA_ENABLE_CUDASIM"] = "0"
from numba import cuda, float32
def double(x):
    x[cuda.grid(1)] *= 2
ptx, _ = cuda.compile_ptx(double, (float32[:],), cc={capability})
assert ".entry" in ptx or ".func" in ptx, ptx
"""
_LAUNCH = """
from tiled_matmul.kit import backend
backend.select()
import numpy
from numba import cuda
@cuda.jit
def double(x):
    x[cuda.threadIdx.x] *= 2
x = cuda.to_device(numpy.arange(8, dtype=numpy.float32))
double[1, 8](x)
assert (x.copy_to_host() == 2 * numpy.arange(8)).all(), x.copy_to_host()
"""
_TRITON = """
from tiled_matmul.kit import backend
backend.select()
import torch, triton, triton.language as tl
@triton.jit
def double(x, n: tl.constexpr):
    i = tl.arange(0, n)
    tl.store(x + i, 2 * tl.load(x + i))
x = torch.arange(8, dtype=torch.float32, device="{device}")
double[(1,)](x, 8)
assert (x.cpu() == 2 * torch.arange(8)).all(), x
"""


def _attempts(programs: dict[str, str]) -> dict[str, Trial]:
    """Run programs beside each other; return what came of each."""
    with ThreadPoolExecutor() as executor:
        return dict(zip(programs, executor.map(_attempt, programs.values()), strict=True))


def _attempt(program: str) -> Trial:
    """Run a program in a separate Python process and return the outcome."""
    path = [str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
    settings = {"PYTHONPATH": os.pathsep.join(filter(None, path))}
    # From a file, because Triton reads the source of its kernels.
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "attempt.py"
        file.write_text(program, encoding="utf-8")
        try:
            done = subprocess.run(
                [sys.executable, str(file)],
                env=os.environ | settings,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=PATIENCE_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return Trial(False, f"not finished after {PATIENCE_S} s")
    if done.returncode == 0:
        return Trial(True, _last_line(done.stdout))
    return Trial(False, _error_line(done.stderr) or f"ended with status {done.returncode}")


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""


def _error_line(text: str) -> str:
    """Return the line of a traceback that names the error, or the last one."""
    named = [line for line in text.splitlines() if re.match(r"[\w.]*(Error|Exception)\b", line)]
    return named[-1].strip() if named else _last_line(text)


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except Exception:  # a half-removed package raises more than PackageNotFoundError
        return None


def _release(version: str) -> tuple[int, ...]:
    """Return "2.13.0+cpu" as (2, 13, 0), so that versions compare as numbers."""
    match = re.match(r"\d+(\.\d+)*", version)
    return tuple(int(part) for part in match[0].split(".")) if match else ()


def _major(version: str) -> int:
    return _release(version)[0]


def _machine(facts: Facts) -> list[str]:
    lines = [f"{facts.system}, {facts.cpu}, {facts.cpu_threads} threads"]
    if facts.gpu:
        capability = ".".join(str(part) for part in facts.capability or ())
        driver = f"driver {facts.driver or '?'}, CUDA {facts.driver_cuda}"
        lines.append(f"{facts.gpu}, compute capability {capability}, {driver}")
    installed = [f"{name} {version}" for name, version in facts.versions.items() if version]
    return [*lines, ", ".join(installed)]
