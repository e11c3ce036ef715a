"""Numba's rungs compile for every GPU of interest, on a machine without one, into what they should.

`ladder_ptx.py` compiles, in processes of its own: here Numba may be on the simulator.
"""

import importlib.util
import json
import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from ladder_ptx import ALIGNED, CAPABILITIES, Compiled

from tiled_matmul import ROOT
from tiled_matmul.ladder import LADDER
from tiled_matmul.languages import NUMBA_CUDA
from tiled_matmul.microscope.compiled import cuda
from tiled_matmul.microscope.compiled.kept import kept

pytestmark = pytest.mark.long  # Numba's analysis of unrolled code takes it half a minute

PROGRAM = ROOT / "tests" / "ladder_ptx.py"
GPU = {r.name: r for r in LADDER if r.language is NUMBA_CUDA}
VERSIONS = ["{}.{}".format(*capability) for capability in CAPABILITIES]
ASYNC_FROM = [8, 0]
SIXTEEN = r"\.(?:v4\.[bfsu]32|v2\.[bfsu]64)\b"  # the end of an access of 16 bytes
# What a rung's module imports from intrinsics.py has to be seen in what its launcher chooses for
# operands that are aligned; but for a store4 to a local array, which is registers.
INTRINSICS = {
    "load4": rf"\bld\.(?:global\S*|shared){SIXTEEN}",
    "store4": rf"\bst\.(?:global|shared){SIXTEEN}",
    "copy_async4": r"\bcp\.async\.cg\.shared\.global .*16",
    "copy_async": r"\bcp\.async\.ca\.shared\.global ",
    "copy_tile_async": r"\bcp\.async\.ca\.shared\.global ",
    "commit_copies": r"\bcp\.async\.commit_group;",
    "wait_copies": r"\bcp\.async\.wait_group ",
}


def compiled(folder: Path, *parts: tuple[str, ...]) -> list[Compiled]:
    """Run ladder_ptx.py once for each of `parts`, at the same time; skip where there is no NVVM."""
    environment = os.environ | {
        "TILED_MATMUL_BACKEND": "compiler",
        "NUMBA_ENABLE_CUDASIM": "0",
        "TRITON_INTERPRET": "0",
        "PYTHONPATH": str(ROOT / "src"),
    }
    files = [folder / f"{'-'.join(part)}.json" for part in parts]
    running = [
        subprocess.Popen(
            [sys.executable, PROGRAM, str(file), *part],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for file, part in zip(files, parts, strict=True)
    ]
    printed = [process.communicate()[0] for process in running]
    for process, text in zip(running, printed, strict=True):
        assert process.returncode == 0, text
    made = [json.loads(file.read_text(encoding="utf-8")) for file in files]
    for answer in made:
        if isinstance(answer, str):
            pytest.skip(f"this Numba cannot make PTX: {answer.splitlines()[0]}")
    return [Compiled(**one) for answer in made for one in answer]


def once(folder: Path, *parts: tuple[str, ...]) -> list[Compiled]:
    asked = PROGRAM.read_bytes() + repr(parts).encode()
    return kept(asked, cuda.tools(), lambda: compiled(folder, *parts))


@pytest.fixture(scope="module")
def ladder(tmp_path_factory) -> list[Compiled]:
    return once(tmp_path_factory.mktemp("ptx"), ("0", "2"), ("1", "2"))


@pytest.fixture(scope="module")
def planted(tmp_path_factory) -> dict[str, Compiled]:
    return {one.rung: one for one in once(tmp_path_factory.mktemp("planted"), ("planted",))}


def faults(one: Compiled) -> list[str]:
    """Return what no kernel of the ladder may hold, a line for each capability and fault."""
    forbidden = {"an array in local memory": r"\b(?:ld|st)\.local\b"}
    if one.dtype != "float64":
        forbidden["float64 arithmetic"] = r"\.f64\b"
    if one.dtype == "int32":
        forbidden["float32 arithmetic"] = r"\.f32\b"
    if one.needs is None or one.needs < ASYNC_FROM:
        forbidden["asynchronous copies that its launcher asks no GPU for"] = r"\bcp\.async\b"
    return [
        f"{one.rung}, {one.dtype}, {version}: {what}"
        for version, text in one.ptx.items()
        for what, pattern in forbidden.items()
        if re.search(pattern, text)
    ]


def test_ptx_is_made_of_every_rung_for_every_gpu_that_it_asks_for(ladder):
    assert {one.rung for one in ladder} == set(GPU)
    complete = set()
    for one in ladder:
        wanted = ["9.0"]
        if one.dtype == "float32" and list(ALIGNED) in one.shapes:
            least = tuple(one.needs or (0, 0))
            wanted = [v for v, cc in zip(VERSIONS, CAPABILITIES, strict=True) if cc >= least]
            complete.add(one.rung)
        assert list(one.ptx) == wanted
        for version, text in one.ptx.items():
            assert f".target sm_{version.replace('.', '')}\n" in text, (one.rung, version)
            assert ".visible .entry" in text and one.kernel in text, (one.rung, version)
    assert complete == set(GPU)


def test_a_launcher_asks_for_8_0_or_for_nothing(ladder):
    # On a 7.5 the others run, and these are refused there: test_ladder_launch.py.
    assert {tuple(one.needs) for one in ladder if one.needs} <= {tuple(ASYNC_FROM)}


def named(module) -> set[str]:
    """Return those of INTRINSICS that a rung's kernel has to hold."""
    source = Path(module.__file__).read_text(encoding="utf-8")
    names = set(INTRINSICS) & set(vars(module))
    local = set(re.findall(r"(\w+) = cuda\.local\.array", source))
    return names - {"store4"} if set(re.findall(r"store4\((\w+)", source)) <= local else names


def test_what_a_rung_has_to_hold_is_read_off_its_source():
    below = import_module("tiled_matmul.ladder.cuda_double_buffer")
    assert named(below) == {"load4", "store4"}
    copies = import_module("tiled_matmul.ladder.cuda_async")
    assert named(copies) == set(INTRINSICS) - {"store4", "copy_tile_async"}


def test_no_rung_holds_what_none_may(ladder):
    assert [fault for one in ladder for fault in faults(one)] == []


@pytest.mark.parametrize("rung", GPU)
def test_a_rung_holds_the_instructions_that_its_module_names(ladder, rung):
    names = named(import_module(f"tiled_matmul.ladder.{GPU[rung].module}"))
    chosen = [one for one in ladder if one.rung == rung and one.dtype == "float32"]
    for version in VERSIONS:
        texts = [one.ptx[version] for one in chosen if version in one.ptx]
        for name in names if texts else ():
            assert any(re.search(INTRINSICS[name], text) for text in texts), (version, name)
    if names <= {"load4", "store4"}:
        assert not any("cp.async" in text for one in chosen for text in one.ptx.values())


@pytest.mark.parametrize(
    ("kernel", "what"),
    [
        ("sums_in_float64", "float64 arithmetic"),
        ("keeps_an_array_in_local_memory", "an array in local memory"),
        ("copies_without_asking", "asynchronous copies that its launcher asks no GPU for"),
    ],
)
def test_a_planted_fault_is_found_for_every_gpu(planted, kernel, what):
    assert faults(planted[kernel]) == [f"{kernel}, float32, {v}: {what}" for v in VERSIONS]


def test_asynchronous_copies_are_refused_below_8_0_by_the_assembler(planted, tmp_path):
    triton = importlib.util.find_spec("triton")
    ptxas = Path(triton.origin).parent / "backends/nvidia/bin/ptxas" if triton else Path("/")
    if not ptxas.is_file():
        pytest.skip("no ptxas here: Triton's wheel has none")
    ended = {}
    for version in ("7.5", "8.0"):
        file = tmp_path / "kernel.ptx"
        text = planted["copies_without_asking"].ptx[version]
        # Triton's assembler may be older than Numba's compiler; the language is old enough.
        file.write_text(re.sub(r"\.version \S+", ".version 8.0", text), encoding="utf-8")
        arch = f"-arch=sm_{version.replace('.', '')}"
        command = [ptxas, arch, file, "-o", tmp_path / "kernel.cubin"]
        ended[version] = subprocess.run(command, capture_output=True, text=True)
    assert ended["8.0"].returncode == 0, ended["8.0"].stderr
    assert ended["7.5"].returncode != 0 and "requires .target sm_80" in ended["7.5"].stderr
