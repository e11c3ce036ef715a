"""The twins of the rungs in CUDA C++: complete, the same in structure, right, and refused alike."""

import ctypes
import itertools
import shutil
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from stand_in_gpu import stand_in_gpu
from twins_on_cpu import launcher

from tiled_matmul.__main__ import main
from tiled_matmul.check import run_checked
from tiled_matmul.kit import cuda_cpp, withheld
from tiled_matmul.kit.backend import select
from tiled_matmul.kit.cuda_cpp import NotCompiled, constants, with_values
from tiled_matmul.kit.settings import Setting
from tiled_matmul.ladder import LADDER, TWINS, rung, rung_or_twin, twin_of, twins
from tiled_matmul.languages import CUDA_CPP, NUMBA_CUDA
from tiled_matmul.measure import bench, fingerprint, results, rungs
from tiled_matmul.page import show_twin
from tiled_matmul.plots import waves
from tiled_matmul.problem import Problem, as_layout

__all__ = ["stand_in_gpu"]  # a fixture
BY_NAME = {twin.rung.name: twin for twin in TWINS}
MODULES = {twin.rung.module: twin for twin in TWINS}
PLACE = "cuda" if select().on_gpu else "cpu"
CAPABILITIES = [(7, 5), (8, 0), (8, 6), (8, 9), (9, 0), (10, 0), (12, 0)]
ASYNC = {
    "cuda_tile_hand",
    "cuda_tile_view",
    "cuda_async",
    "cuda_best",
    "cuda_split_k",
}  # from 8.0 on
SETTING = Setting(64, 128, 8, 32, 64, 8, 8, 128)
OPTIONS = {
    "cuda_naive": ({"block": (32, 8)}, {"block": (1, 1)}),
    "cuda_coalesced": ({"block": (32, 8)},),
    "cuda_puzzle": ({"tpb": 7}, {"tpb": 32}),
    "cuda_shared_16": ({"tile": 5},),
    "cuda_padded": ({"tile": 16, "pad": 0}, {"coalesced": False}),
    "cuda_transposed_tn": ({"tile": 8, "pad": 3},),
    "cuda_thread_tile_2d": ({"rows": 4, "columns": 16}, {"rows": 12, "columns": 4}),
    "cuda_tile_hand": ({"tile": 16},),
    "cuda_tile_view": ({"tile": 16},),
    "cuda_best": ({"setting": SETTING},),
    "cuda_split_k": ({"setting": SETTING}, {"setting": SETTING, "padded": True}),
}
SHAPES = [(1, 1, 1), (3, 5, 7), (33, 65, 17), (130, 72, 44), (132, 260, 20), (129, 140, 1)]
needs_nvrtc = pytest.mark.skipif(bool(cuda_cpp.missing()), reason="no NVRTC")


def operands(twin, shape, dtype, kind="integers"):
    problem = Problem(*shape, dtype)
    return as_layout(*problem.inputs(1, kind, PLACE), twin.layout)


def kernel_of(twin, dtype="float32", size=512, **options):
    """Return the CppKernel that a twin launches first."""
    return withheld.of(twin.matmul, *operands(twin, (size,) * 3, dtype), **options)[0].kernel


def compiled_by(language, matmul, twin, size=256):
    return language.compiled(matmul, *operands(twin, (size,) * 3, "float32"), (9, 0))


def test_every_rung_in_numba_cuda_has_a_twin():
    wanted = [r.name for r in LADDER if r.language == NUMBA_CUDA]
    assert [twin.rung.name for twin in TWINS] == wanted
    assert {path.stem for path in twins.FOLDER.glob("*.cu")} == {*MODULES, "sum_parts"}
    assert len({twin.name for twin in TWINS}) == len(TWINS)
    assert not any(twin.name in {r.name for r in LADDER} for twin in TWINS)
    assert twin_of("triton_best") is None and twin_of(rung("cuda_best")) is BY_NAME["cuda_best"]
    assert rung_or_twin("cuda_naive in CUDA C++") is BY_NAME["cuda_naive"]


@pytest.mark.parametrize("module", MODULES)
def test_constants_are_those_of_the_module(module):
    home, text = MODULES[module].rung.home, MODULES[module].text
    known = {"true": True, "false": False}
    for name, expression in constants(text).items():
        known[name] = eval(expression.replace("/", "//"), {}, known)
        assert known[name] == getattr(home, name), name
    assert text.startswith(f"// The twin of {module}: ")
    assert f"void {module}_kernel(" in text


@needs_nvrtc
@pytest.mark.sample(3)
@pytest.mark.parametrize("cc", CAPABILITIES)
def test_every_twin_compiles(cc):
    if cc not in {divmod(arch, 10) for arch in cuda_cpp.capabilities()}:
        pytest.skip("this NVRTC does not compile for it")
    for number, (module, twin) in enumerate(MODULES.items()):
        kernel = kernel_of(twin, twin.dtypes[number % len(twin.dtypes)])
        if cc < (8, 0) and module in ASYNC:
            with pytest.raises(NotCompiled, match="cp.async"):
                kernel.cubin(cc)
        else:
            assert kernel.cubin(cc)[:4] == b"\x7fELF", module


@needs_nvrtc
def test_a_twin_has_the_type_the_constants_and_the_registers_of_its_rung():
    kernel = kernel_of(BY_NAME["cuda_transposed_nt"], "float64", tile=16)
    assert "using T = double;" in kernel.text
    assert {"TILE": "16", "PITCH": "17", "A_BY_COLUMNS": "false", "B_BY_COLUMNS": "true"} == (
        constants(kernel.text)
    )
    assert kernel_of(BY_NAME["cuda_thread_tile_1d"]).max_registers == 40
    assert kernel_of(BY_NAME["cuda_best"], setting=SETTING).max_registers == 128
    assert "using T = unsigned int;" in kernel_of(BY_NAME["cuda_async"], "int32").text


def test_a_twin_follows_the_rung_to_the_kernel_that_fits():
    for name in ("cuda_vectorised", "cuda_double_buffer", "cuda_unrolled", "cuda_warp_tiles"):
        twin = BY_NAME[name]
        (launch,) = withheld.of(twin.matmul, *operands(twin, (64, 63, 62), "float32"))
        assert launch.kernel.name == "cuda_thread_tile_2d_kernel"
        assert len(twin.texts()) == 2
    twin = BY_NAME["cuda_split_k"]
    options = {"setting": SETTING, "splits": 3}
    launches = withheld.of(twin.matmul, *operands(twin, (9, 6, 70), "float32"), **options)
    assert [each.kernel.name for each in launches] == ["cuda_split_k_kernel", "sum_parts_kernel"]
    assert launches[0].arguments[3:] == (9, 6, 70, 3, 8, 1)
    assert launches[1].arguments[2:] == (9, 6, 70, 3, 8)
    assert len(twin.texts()) == 2
    twin = BY_NAME["cuda_article"]
    (launch,) = withheld.of(twin.matmul, *operands(twin, (5, 6, 7), "float32"))
    assert launch.arguments[3:] == (5, 6, 7)


@needs_nvrtc
@pytest.mark.parametrize(
    "name", ["cuda_shared_16", "cuda_vectorised", *(pytest.param(name, marks=pytest.mark.long) for
             name in BY_NAME if name not in ("cuda_shared_16", "cuda_vectorised"))]
)  # fmt: skip
def test_rung_and_twin_have_the_same_shared_memory_and_widths_of_loads(name):
    twin = BY_NAME[name]
    theirs, *_ = compiled_by(NUMBA_CUDA, twin.rung.matmul, twin)
    ours, *_ = compiled_by(CUDA_CPP, twin.matmul, twin)
    assert ours.shared_bytes == theirs.shared_bytes
    assert ours.spilled_bytes == theirs.spilled_bytes == 0
    for kind in ("shared loads of 16 bytes", "global loads of 16 bytes", "asynchronous copies"):
        assert bool(ours.count(kind, "whole")) == bool(theirs.count(kind, "whole")), kind
    kind = "global loads of 16 bytes"
    assert ours.count(kind, "whole") == theirs.count(kind, "whole")


def check_products(twin):
    """Check a twin's products: ragged, in all dtypes, with options, and from odd addresses."""
    for dtype, shape in itertools.product(twin.dtypes, SHAPES):
        a, b = operands(twin, shape, dtype, Problem(*shape, dtype).kind)
        run_checked(twin.matmul, a, b)
        run_checked(twin.matmul, a, b)  # by the plan
    for options, shape in itertools.product(OPTIONS.get(twin.rung.name, ()), SHAPES):
        run_checked(twin.matmul, *operands(twin, shape, "float32"), **options)
    if twin.layout == "nn":
        given = operands(twin, (36, 40, 44), "float32")
        run_checked(
            twin.matmul, *(torch.cat([x[0, :1], x.flatten()])[1:].view(x.shape) for x in given)
        )
    if twin.rung.name == "cuda_split_k":
        for shape, padded in itertools.product([(70, 301, 100), (33, 64, 47)], (None, True)):
            given = operands(twin, shape, "float32")
            run_checked(twin.matmul, *given, setting=SETTING, splits=3, padded=padded)


@pytest.mark.gpu
@pytest.mark.parametrize("name", BY_NAME)
def test_a_twin_is_right(name):
    twin = BY_NAME[name]
    check_products(twin)
    a, b = operands(twin, (40, 32, 24), "float32")
    assert torch.equal(twin.matmul(a, b), twin.rung.matmul(a, b))


@pytest.mark.long
@pytest.mark.skipif(select().on_gpu, reason="a GPU is here")
@pytest.mark.skipif(not shutil.which("g++"), reason="no g++")
@pytest.mark.parametrize("name", BY_NAME)
def test_a_twin_compiled_for_the_cpu_is_right(name, monkeypatch, tmp_path):
    monkeypatch.setattr(cuda_cpp, "launch", launcher(tmp_path))
    check_products(BY_NAME[name])


def refusal(matmul, *args, **options):
    with pytest.raises((ValueError, TypeError)) as caught:
        matmul(*args, **options)
    return type(caught.value), str(caught.value)


@pytest.mark.parametrize("name", BY_NAME)
def test_a_twin_refuses_what_its_rung_refuses(name):
    twin = BY_NAME[name]
    a, b = operands(twin, (8, 8, 8), "float32")
    wide = torch.zeros((8, 16), device=PLACE)
    for pair in ((a, b[:4]), (a.double(), b), (a.half(), b.half()), (wide[:, ::2], b), (a[0], b)):
        assert refusal(twin.matmul, *pair) == refusal(twin.rung.matmul, *pair)
    assert "strides (16, 2)" in refusal(twin.matmul, wide[:, ::2], b)[1]
    assert refusal(twin.matmul, a, b, out=a) == refusal(twin.rung.matmul, a, b, out=a)


def test_options_are_refused_as_the_rung_refuses_them():
    for name, wrong in (("cuda_puzzle", {"tpb": 33}), ("cuda_padded", {"pad": -1})):
        twin = BY_NAME[name]
        a, b = operands(twin, (4, 4, 4), "float32")
        assert refusal(twin.matmul, a, b, **wrong) == refusal(twin.rung.matmul, a, b, **wrong)


@pytest.mark.skipif(select().on_gpu, reason="a GPU is here")
def test_without_a_gpu_a_twin_says_that_it_needs_one():
    twin = BY_NAME["cuda_naive"]
    assert "needs a GPU" in refusal(twin.matmul, *operands(twin, (4, 4, 4), "float32"))[1]
    assert not CUDA_CPP.runs_here()


def test_matrices_that_are_not_dense_and_sizes_beyond_an_int_are_refused():
    a, b = operands(BY_NAME["cuda_naive"], (4, 4, 4), "float32")
    (launch,) = withheld.of(rung("cuda_naive").matmul, a, b)
    gaps = launch._replace(arguments=(a[:, ::2], b, a))
    with pytest.raises(ValueError, match=r"strides \(4, 2\)"):
        cuda_cpp.arguments(gaps, 4, 4, 2)
    with pytest.raises(ValueError, match=f"below {2**31 - 2**16}, got K={2**31}"):
        cuda_cpp.arguments(launch, 4, 4, 2**31)
    assert cuda_cpp.arguments(launch, 4, 5, 6)[3:] == (np.int32(4), np.int32(5), np.int32(6))


def test_a_matrix_with_more_elements_than_an_int_counts_is_refused():
    (launch,) = withheld.of(
        rung("cuda_naive").matmul, *operands(twin_of("cuda_naive"), (4,) * 3, "float32")
    )
    for number, shape in enumerate([(2**16, 2**15), (2**10, 2**21 + 1), (2**16, 2**16)]):
        tensors = [torch.empty(4, 4, device="meta") for _ in "abc"]
        tensors[number] = torch.empty(shape, device="meta")
        with pytest.raises(
            ValueError, match=r"fewer than 2³¹ .* got shape \({}, {}\)".format(*shape)
        ):
            cuda_cpp.arguments(launch._replace(arguments=tuple(tensors)), 4, 4, 4)
    most = torch.empty(2**31 - 1, 1, device="meta")
    fits = launch._replace(arguments=(most, tensors[0], most))
    assert cuda_cpp.arguments(fits, 4, 4, 4)[0] is most


def test_a_launch_passes_addresses_ints_and_an_alpha_of_the_type_of_c():
    a, b = operands(BY_NAME["cuda_best"], (4, 8, 4), "float32")
    code = SimpleNamespace(function=None, module=None, gpu=0)
    (launch,) = withheld.of(BY_NAME["cuda_best"].matmul, a, b)
    made = cuda_cpp.PlainLaunch(code, launch.grid, launch.block, launch.arguments)
    assert made.slots == [0, 1, 2]
    kinds = [ctypes.c_int64] * 3 + [ctypes.c_int] * 3 + [ctypes.c_float]
    assert [type(value) for value in made.values] == kinds
    assert [value.value for value in made.values[3:]] == [4, 8, 4, 1]


TEXT = "using T = float;\nconstexpr int A = 2, B = A * 2;  // both\nconstexpr bool C = true;\n"


def test_values_replace_those_of_the_text():
    made = with_values(TEXT, "float64", {"B": 3, "C": False})
    assert made.splitlines() == [
        "using T = double;",
        "constexpr int A = 2, B = 3;  // both",
        "constexpr bool C = false;",
    ]
    for text, dtype, values, what in (
        (TEXT, "float32", {"D": 1}, "no constant 'D'; the text has A, B, C"),
        (TEXT, "float32", {"A": 1.5}, "A must be an int or a bool, got 1.5"),
        (TEXT, "float16", {}, "got float16"),
        ("int x;", "float32", {}, "using T"),
    ):
        with pytest.raises((ValueError, TypeError), match=what):
            with_values(text, dtype, values)


def test_a_text_that_is_missing_or_lacks_a_constant_is_a_fault(tmp_path, monkeypatch):
    twin = BY_NAME["cuda_shared_16"]
    given = operands(twin, (4, 4, 4), "float32")
    before = fingerprint.of(twin.name), fingerprint.of("cuda_coalesced in CUDA C++")
    shutil.copytree(twins.FOLDER, tmp_path, dirs_exist_ok=True)
    monkeypatch.setattr(twins, "FOLDER", tmp_path)
    fingerprint.of.cache_clear()
    assert fingerprint.of(twin.name) == before[0]
    (tmp_path / "cuda_shared_tiles.cu").write_text(twin.text.replace("TILE", "EDGE"))
    with pytest.raises(ValueError, match="cuda_shared_tiles_kernel in CUDA C.*no constant 'TILE'"):
        twin.matmul(*given)
    fingerprint.of.cache_clear()
    assert fingerprint.of(twin.name) != before[0]
    assert fingerprint.of("cuda_coalesced in CUDA C++") == before[1]
    (tmp_path / "cuda_shared_tiles.cu").unlink()
    with pytest.raises(ValueError, match="cuda_shared_tiles has no twin in CUDA C"):
        twin.matmul(*given)
    monkeypatch.undo()
    fingerprint.of.cache_clear()


def test_the_text_of_a_twin_can_be_edited():
    twin = BY_NAME["cuda_coalesced"]
    given = operands(twin, (4, 4, 4), "float32")
    (launch,) = withheld.of(twins.edited(twin, ("(int k", "(long k"), ("k++", "++k")), *given)
    assert launch.kernel.text == twin.text.replace("(int k", "(long k").replace("k++", "++k")
    assert launch.arguments[:2] == given and launch.arguments[3:] == (4, 4, 4)
    (launch,) = withheld.of(twin.matmul, *given)
    assert launch.kernel.text == twin.text
    with pytest.raises(ValueError, match="'long' is not in the text of cuda_coalesced in CUDA C"):
        twins.edited(twin, ("long", "int"))


@needs_nvrtc
def test_what_nvrtc_rejects_is_told_with_its_log():
    kernel = kernel_of(BY_NAME["cuda_naive"])
    broken = cuda_cpp.CppKernel(kernel.name, kernel.text.replace("acc +=", "sum +="))
    with pytest.raises(NotCompiled, match='identifier "sum" is undefined'):
        broken.cubin((9, 0))
    with pytest.raises(ValueError, match="does not compile for 3.5"):
        kernel.cubin((3, 5))


def test_without_nvrtc_twins_are_left_out_and_their_texts_are_shown(monkeypatch):
    monkeypatch.setattr(cuda_cpp, "missing", lambda: "NVRTC is not here")
    assert CUDA_CPP.missing() == "NVRTC is not here"
    assert rungs.with_twins([rung("cuda_naive")]) == [rung("cuda_naive")]
    assert "threadIdx.x" in repr(show_twin("cuda_naive"))
    with pytest.raises(ModuleNotFoundError, match="NVRTC is not here"):
        cuda_cpp.CppKernel("x", "").cubin((9, 0))


def test_pages_show_a_twin_folded():
    shown = show_twin("cuda_coalesced")
    assert repr(shown) == BY_NAME["cuda_coalesced"].text.rstrip()
    assert shown._repr_html_().startswith("<details><summary>The same kernel in CUDA C++</summary>")
    with pytest.raises(ValueError, match="'triton_best' has no twin"):
        show_twin("triton_best")


def multiplied(kernel, grid, block, a, b, c, *numbers):
    """Stand in for `cuda_cpp.launch`."""
    c.copy_(a @ b)


def test_twins_are_timed_beside_their_rungs_and_are_no_rungs_of_tables(stand_in_gpu, tmp_path):
    stand_in_gpu.setattr(cuda_cpp, "launch", multiplied)
    stand_in_gpu.setattr(cuda_cpp, "missing", lambda: "")
    stand_in_gpu.setattr(cuda_cpp, "version", lambda: "13.5")
    asked = rungs.with_twins([rung("cuda_coalesced"), rung("triton_best")])
    assert [each.name for each in asked] == [
        "cuda_coalesced", "triton_best", "cuda_coalesced in CUDA C++"
    ]  # fmt: skip
    timed = [each for each in asked if each.name != "triton_best"]
    found = bench.bench(timed, Problem(8, 9, 10), budget_s=0.01)
    assert [record.rung for record in found] == ["cublas", *(each.name for each in timed)]
    twin = found[2]
    assert twin.kernel == fingerprint.of(twin.rung) and twin.versions["nvrtc"] == "13.5"
    assert "nvrtc" not in found[1].versions
    assert rungs.shares(found) == {"cuda_coalesced": twin.time_ms / found[1].time_ms}
    assert rungs.shares(found[:2]) == {}
    # They are stored, and what reads records for the ladder passes them over.
    results.save(tmp_path / "x.json", found)
    stored = results.load(tmp_path / "x.json")
    assert stored == found
    assert results.ladder_record(stored, rung("cuda_coalesced")) == found[1]
    assert twin not in waves.ascent(results.reference() + [twin])


def test_a_job_of_the_suite_runs_twins_beside_their_rungs(monkeypatch):
    monkeypatch.setattr(cuda_cpp, "missing", lambda: "")
    for job in rungs.jobs("gpu"):
        own = {name for name in job.kernels if name in BY_NAME}
        assert {BY_NAME[name].name for name in own} <= set(job.kernels)
        assert bool(own) == ("float32" in job.name)
    assert not any("C++" in name for job in rungs.jobs("gpu", "bfloat16") for name in job.kernels)


def test_a_twin_is_not_timed_without_its_rung_nor_where_memory_lacks(stand_in_gpu):
    stand_in_gpu.setattr(cuda_cpp, "launch", multiplied)
    stand_in_gpu.setattr(cuda_cpp, "missing", lambda: "")
    asked = rungs.with_twins([rung("cuda_naive"), rung("cuda_coalesced")])
    left = []
    estimated = bench.estimate_s
    stand_in_gpu.setattr(
        bench, "estimate_s", lambda r, p: 9 if r.name == "cuda_naive" else estimated(r, p)
    )
    found = rungs.timed(asked, Problem(8, 8, 8), lambda *pair: left.append(pair), budget_s=0.01)
    assert [record.rung for record in found] == [
        "cublas", "cuda_coalesced", "cuda_coalesced in CUDA C++"
    ]  # fmt: skip
    assert left[1] == ("cuda_naive in CUDA C++", "cuda_naive is not timed")

    timed = bench.bench

    def too_much(chosen, *args, **options):
        if any(each in TWINS for each in chosen):
            raise torch.OutOfMemoryError("CUDA out of memory")
        return timed(chosen, *args, **options)

    stand_in_gpu.setattr(bench, "bench", too_much)
    left.clear()
    found = rungs.timed(asked[1:], Problem(8, 8, 8), lambda *pair: left.append(pair), budget_s=0.01)
    assert [record.rung for record in found] == ["cublas", "cuda_coalesced"]
    assert ("cuda_coalesced in CUDA C++", "there is too little memory") in left


def bench_of(capsys, *arguments):
    status = main(["bench", "--rungs", "cuda_coalesced", "--shapes", "8x8x8", *arguments])
    out, err = capsys.readouterr()
    return status, out.splitlines(), err


def test_the_bench_prints_what_the_language_costs(stand_in_gpu, capsys, tmp_path):
    stand_in_gpu.setattr(cuda_cpp, "launch", multiplied)
    stand_in_gpu.setattr(cuda_cpp, "missing", lambda: "")
    path = tmp_path / "x.json"
    status, lines, err = bench_of(capsys, "--json", str(path), "--budget", "0.01")
    assert (status, err) == (0, "")
    assert "of CUDA C++" in lines[0]
    assert [line.split()[2] for line in lines[1:]] == ["cublas", "cuda_coalesced"]
    assert "  100.0%  " in lines[2]
    assert [r.rung for r in results.load(path)][2:] == ["cuda_coalesced in CUDA C++"]
    status, lines, _ = bench_of(capsys, "--no-twins", "--budget", "0.01")
    assert "of CUDA C++" not in lines[0] and "%" in lines[2] and "100.0%" not in lines[2]


def test_the_bench_says_in_one_line_that_nvrtc_is_missing(stand_in_gpu, capsys):
    stand_in_gpu.setattr(cuda_cpp, "missing", lambda: "NVRTC is not here")
    status, lines, err = bench_of(capsys, "--budget", "0.01")
    assert (status, err) == (0, "Twins in CUDA C++ are left out: NVRTC is not here.\n")
    assert len(lines) == 3 and "of CUDA C++" not in lines[0]
