"""languages/: what each language of the course answers, and that the answers are true."""

import subprocess
import sys

import numpy as np
import pytest
import torch

from tiled_matmul.kit.backend import select
from tiled_matmul.kit.programs import without_notice
from tiled_matmul.ladder import ABROAD, LADDER, LAYER, TWINS, rung
from tiled_matmul.languages import GLUON, LANGUAGES, NUMBA, NUMBA_CUDA, PYTHON, TRITON
from tiled_matmul.microscope.cuda.errors import KernelError

GPU = select().gpu
PLACE = "cuda" if select().on_gpu else "cpu"
NEEDED = (PYTHON, NUMBA, NUMBA_CUDA, TRITON, GLUON)  # the course does not do without them
IMPORTS = {  # how the line begins
    NUMBA: "from numba import njit",
    NUMBA_CUDA: "from numba import cuda",
    TRITON: "import triton",
    GLUON: "from triton.experimental import gluon",
}
MULTIPLIES = {  # a rung of each that launches a kernel in it
    "numba-cuda": "cuda_coalesced",
    "triton": "triton_swizzled",
    "gluon": "gluon_shapes",
}


def operands(r, size=256):
    return [torch.ones((size, size), dtype=getattr(torch, r.dtype), device=PLACE) for _ in "ab"]


def test_every_rung_is_in_a_language_of_the_list():
    used = {r.language.name for r in (*LADDER, *LAYER, *TWINS, *ABROAD)}
    assert used == {language.name for language in LANGUAGES}
    assert len(used) == len(LANGUAGES)


def test_a_rung_is_in_the_language_that_its_file_imports():
    """Files without a kernel of their own, which call other rungs, may import any."""
    for r in (*LADDER, *LAYER):
        if r.language not in NEEDED or r.kernel is None or "." in r.kernel_name:
            continue
        lines = r.source.read_text(encoding="utf-8").splitlines()
        imported = [
            language
            for language, beginning in IMPORTS.items()
            if any(line.startswith(beginning) for line in lines)
        ]
        assert imported == ([] if r.language == PYTHON else [r.language]), r.name


def test_to_know_the_languages_imports_none_of_them():
    code = (
        "import sys\n"
        "from tiled_matmul.ladder import LADDER\n"
        "for r in LADDER:\n"
        "    r.available, r.device, r.language.untraced(), r.language.versions(), r.language\n"
        "print(*{'numba', 'triton', 'torch'} & set(sys.modules))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("\n", "")


def test_versions_are_those_of_what_compiles():
    found = [sorted(language.versions()) for language in NEEDED]
    cuda = ["numba", "numba-cuda"] if sys.platform == "linux" else ["numba"]
    assert found == [["numpy"], ["numba"], cuda, ["triton"], ["triton"]]
    assert TRITON.versions()["triton"] == __import__("triton").__version__


@pytest.mark.parametrize("language", [NUMBA_CUDA, TRITON, GLUON], ids=repr)
def test_what_a_rung_launches_is_compiled_and_not_launched(language):
    r = rung(MULTIPLIES[language.name])
    assert r.language is language
    if language is GLUON and GPU and GPU.capability != (9, 0):
        pytest.skip("there the rung launches another kernel")
    a, b = operands(r)
    out = torch.zeros_like(a)
    (made,) = language.compiled(lambda x, y: r.matmul(x, y, out=out), a, b, (9, 0))
    assert made.name == r.kernel.__name__ and made.cc == (9, 0)
    assert 16 < made.registers < 256 and made.spilled_bytes == 0
    assert (made.shared_bytes > 0) is (language is not NUMBA_CUDA)
    assert not out.any()


@pytest.mark.parametrize("language", [PYTHON, NUMBA], ids=repr)
def test_what_is_not_compiled_by_itself_is_refused(language):
    with pytest.raises(ValueError, match=f"no kernels in {language.title} without launching"):
        language.compiled(np.matmul, np.ones((2, 2)), np.ones((2, 2)), (9, 0))


def test_a_kernel_is_launched_as_its_language_launches():
    from numba import cuda

    @cuda.jit
    def double(x):
        i = cuda.grid(1)
        if i < x.size:
            x[i] *= 2

    x = torch.ones(40, device=PLACE)
    NUMBA_CUDA.launch(double, (2,), (32,), x)
    assert x.tolist() == [2.0] * 40
    a, b, c = np.ones((2, 3)), np.ones((3, 2)), np.zeros((2, 2))
    PYTHON.launch(rung("loops_python").kernel, a, b, c)
    NUMBA.launch(rung("njit_ijk").kernel, a, b, c)
    assert c.tolist() == [[3, 3], [3, 3]]


def test_programs_are_launched_with_their_constants():
    r = rung("triton_block_pointers")
    a, b = operands(r, 16)
    c = torch.zeros_like(a)
    strides = (*a.stride(), *b.stride(), *c.stride())
    options = {"BLOCK_M": 16, "BLOCK_N": 16, "BLOCK_K": 16, "PRECISION": "tf32", "num_warps": 1}
    with without_notice():
        TRITON.launch(r.kernel, (1, 1), a, b, c, 16, 16, 16, *strides, **options)
    assert bool((c == 16).all())


def test_numba_cuda_is_traced():
    a = torch.ones((20, 20), device=PLACE)
    (trace,) = NUMBA_CUDA.trace(rung("cuda_naive").matmul, a, a, order="reverse", seed=0)
    assert NUMBA_CUDA.untraced() == "" and not trace.findings
    assert trace.name.startswith("cuda_naive_kernel")


def test_triton_is_traced_elsewhere_and_gluon_nowhere():
    from triton.experimental import gluon

    from tiled_matmul import trace_tiles

    assert "tiled_matmul.trace_tiles traces it" in TRITON.untraced()
    assert "trace_tiles" not in GLUON.untraced()
    language = gluon.language

    @gluon.jit
    def double(x):
        i = language.arange(0, 32, language.BlockedLayout([1], [32], [1], [0]))
        language.store(x + i, 2 * language.load(x + i))

    with pytest.raises(KernelError):
        trace_tiles(double, (1,), torch.ones(32))


def test_where_a_module_is_absent_the_language_says_so(monkeypatch):
    for module, languages in {"triton": (TRITON, GLUON), "numba": (NUMBA, NUMBA_CUDA)}.items():
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, module, None)
            for language in languages:
                assert "is not installed" in language.missing() and not language.runs_here()
                with pytest.raises(ModuleNotFoundError, match="is not installed") as error:
                    language.need()
                assert error.value.name == module
    assert all(language.missing() == "" and language.runs_here() for language in NEEDED)
