"""tile_code.py, and what Triton makes of every rung for GPUs that are not here.

All rungs are compiled for all GPUs at once, in two processes; PLAN says with which blocks.
"""

import inspect
import os
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path

import pytest
import torch
import triton
import triton.language as tl
from other_gpu import other_gpu

from tiled_matmul.kit import programs
from tiled_matmul.kit.programs import launched
from tiled_matmul.kit.variants import edited
from tiled_matmul.ladder import LADDER
from tiled_matmul.ladder.triton_tuned import Setting
from tiled_matmul.languages import GLUON, TRITON
from tiled_matmul.machine import backend
from tiled_matmul.machine.device import shared_limit
from tiled_matmul.microscope.compiled import triton as tile_code
from tiled_matmul.microscope.compiled.cuda import NoCompiler
from tiled_matmul.microscope.compiled.triton import (
    NotCompiled,
    TileCode,
    function_of,
    tile_codes,
)

RUNGS = {r.name: r for r in LADDER if r.language in (TRITON, GLUON)}
CAPABILITIES = ((7, 5), (8, 0), (8, 9), (9, 0), (10, 0), (12, 0))  # 8.6 has the limits of 8.9
AMD = "gfx942"
N = 4096
# Blocks for those who choose none by themselves: by what (or dtype, on 9.0) they do not fit.
LITTLE = {"block": (64, 64, 16), "num_warps": 8}
OTHERWISE = {
    ("triton_block_pointers_3", (7, 5)): LITTLE,
    ("triton_block_pointers_3", AMD): LITTLE,
    ("triton_block_pointers_3", "float32"): LITTLE,
    ("triton_swizzled", AMD): LITTLE,
    ("triton_tuned", AMD): {"space": (Setting((64, 64, 16), 8, 3),)},
    ("triton_descriptors", AMD): LITTLE,
    ("triton_persistent", AMD): LITTLE,
    ("triton_specialised", AMD): LITTLE,
    ("triton_split_k", AMD): {"overlap": False},
    ("triton_uneven", AMD): {"num_stages": 3},  # Triton 3.6 needs 72 KiB for four
}
GLUONS = {r.name for r in LADDER if r.language is GLUON}
ELSEWHERE = {(name, AMD) for name in GLUONS}  # its kernel is for NVIDIA's wgmma
# Which hardware multiplies matrices of float16 where.
CORES = {
    (7, 5): None,
    (8, 0): "mma.sync",
    (8, 9): "mma.sync",
    (9, 0): "wgmma",
    (10, 0): "tcgen05.mma",
    (12, 0): "mma.sync",
    AMD: "mfma",
}


def rung(name):
    return import_module(f"tiled_matmul.ladder.{RUNGS[name].module}")


def matrices(dtype="float16"):
    kind = getattr(torch, dtype)
    place = "cuda" if backend.select().on_gpu else "cpu"
    return torch.empty(N, N, dtype=kind, device=place), torch.empty(N, N, dtype=kind, device=place)


def planned(name, cc, dtype="float16"):
    """Return {(name, cc, dtype, number): job} of what a rung launches there by itself."""
    options = RUNGS[name].options | OTHERWISE.get((name, dtype if cc == (9, 0) else cc), {})
    matmul = rung(name).matmul  # imported before another GPU is said to be here
    with other_gpu((9, 0) if cc == AMD else cc):
        launches = launched(matmul, *matrices(dtype), **options)
    return {(name, cc, dtype, i): (*launch, cc) for i, launch in enumerate(launches)}


def everything():
    plan = {}
    for name in RUNGS:
        for cc in (*CAPABILITIES, AMD):
            if (name, cc) not in ELSEWHERE:
                plan |= planned(name, cc)
        plan |= planned(name, (9, 0), "float32") | planned(name, (9, 0), "bfloat16")
    return plan


@pytest.fixture(scope="module")
def plan() -> dict[tuple, tuple]:
    """Return {(rung, cc, dtype, launch): (kernel, arguments, options, cc)}."""
    return everything()


@pytest.fixture(scope="module")
def codes(plan) -> dict[tuple, TileCode]:
    """Return {(rung, cc, dtype, launch): TileCode}, compiled in two processes."""
    jobs = list(plan.items())
    with ThreadPoolExecutor() as pool:
        parts = pool.map(lambda part: tile_codes(dict(part)), (jobs[::2], jobs[1::2]))
        return {place: code for part in parts for place, code in part.items()}


def of(codes, **wanted):
    """Return the codes of the first launch, by (rung, cc), where what is asked for fits."""
    wanted = {"dtype": "float16", "number": 0} | wanted
    keys = ("name", "cc", "dtype", "number")
    places = {place: dict(zip(keys, place, strict=True)) for place in codes}
    fits = [p for p, named in places.items() if all(named[k] == v for k, v in wanted.items())]
    assert fits
    return {place[:2]: codes[place] for place in fits}


# --- the ladder -----------------------------------------------------------------------------------


@pytest.mark.long
def test_every_rung_is_compiled_for_every_gpu(codes):
    wanted = {(name, cc) for name in RUNGS for cc in (*CAPABILITIES, AMD)}
    assert set(of(codes)) == wanted - ELSEWHERE
    for (_, cc, _, _), code in codes.items():
        if cc != AMD:
            version = "{}{}".format(*cc)
            assert f".target sm_{version}" in code.ptx and code.registers <= 255
        assert "tt.func" in code.ttgir and code.num_warps >= 1


@pytest.mark.long
def test_each_gpu_multiplies_with_what_it_has(codes):
    for (name, cc), code in of(codes).items():
        kinds = {kind for kind in tile_code.TENSOR_CORES if code.count(kind)}
        wanted = {CORES[cc]} if CORES[cc] else set()
        assert kinds == wanted, (name, cc, code.features)
        assert bool(code.count("FMAs")) == (cc == (7, 5)) or cc == AMD, (name, cc, code.features)


@pytest.mark.long
def test_bfloat16_is_multiplied_as_float16_is_and_float32_by_threads(codes):
    for (name, _), code in of(codes, cc=(9, 0), dtype="bfloat16").items():
        assert code.count("wgmma") > 0 and code.spilled_bytes == 0, name
    for (name, _), code in of(codes, cc=(9, 0), dtype="float32").items():
        assert code.count("tensor cores") == 0 and code.count("FMAs") > 100, name


@pytest.mark.long
def test_tiles_are_copied_asynchronously_where_the_gpu_can(plan, codes):
    for (name, cc), code in of(codes).items():
        if cc == AMD:
            continue
        kernel, arguments, *_ = plan[name, cc, "float16", 0]
        passed = any(hasattr(x, "block_shape") for x in arguments)
        made = "tl.make_tensor_descriptor(" in inspect.getsource(function_of(kernel))
        tma = (passed or made) and cc >= (9, 0)
        copies = not passed and not tma and cc >= (8, 0)
        assert bool(code.count("TMA loads")) == tma, (name, cc, code.features)
        assert bool(code.count("cp.async")) == copies, (name, cc, code.features)
    assert codes["triton_descriptors", (9, 0), "float16", 0].count("TMA loads") > 0


@pytest.mark.long
def test_the_second_kernel_of_split_k_starts_early_where_the_gpu_can(codes):
    for number, said in ((0, "griddepcontrol.launch_dependents"), (1, "griddepcontrol.wait")):
        for place, code in of(codes, number=number, name="triton_split_k").items():
            early = place[1] != AMD and place[1] >= (9, 0)
            assert (said in code.assembly) == early, place


@pytest.mark.long
def test_warps_have_different_work_where_a_rung_asks_for_it(codes):
    roles = {"triton_specialised", *GLUONS} - {"gluon_tile", "gluon_ring"}
    for dtype in ("float16", "bfloat16", "float32"):
        for (name, _), code in of(codes, cc=(9, 0), dtype=dtype).items():
            fires = name in roles and dtype != "float32"
            assert bool(code.count("warp specialisation")) == fires, (name, dtype)
            assert (code.num_warps >= 12) == fires, (name, dtype, code.num_warps)
            # One group of warps gives registers away, and the others take them.
            given = re.findall(r"setmaxnreg\.(inc|dec)\.", code.ptx)
            assert ({"inc", "dec"} <= set(given)) == fires, (name, dtype, given)
    assert not any(
        c.count("warp specialisation") for (_, cc, *_), c in codes.items() if cc != (9, 0)
    )


@pytest.mark.long
def test_warps_have_different_work_whichever_way_the_matrices_lie():
    a, b = matrices()
    jobs = {}
    pairs = {"nn": (a, b), "nt": (a, b.T), "tn": (a.T, b), "tt": (a.T, b.T)}
    for layout, pair in pairs.items():
        [jobs[layout]] = launched(rung("triton_specialised").matmul, *pair)
    for layout, code in tile_codes(jobs).items():
        assert code.count("warp specialisation") and code.spilled_bytes == 0, layout
        # What is copied into half a tile is described as half a tile.
        copies = re.findall(
            r"async_tma_copy_global_to_local .*desc<\D*(\d+x\d+)x.*-> !ttg\.memdesc<(\d+x\d+)x",
            code.ttgir,
        )
        assert len(copies) == 3 and all(box == room for box, room in copies), (layout, copies)


@pytest.mark.long
@pytest.mark.parametrize("stages", [2, 4])
def test_what_may_be_specialised_is(stages):
    jobs = {}
    sizes = ((128, 16, 64), (128, 64, 64), (128, 128, 64), (256, 128, 64), (256, 64, 32))
    for block in (*sizes, (128, 32, 32), (128, 128, 32), (128, 256, 32)):
        options = {"block": block, "num_warps": 4, "num_stages": stages, "specialise": True}
        [jobs[block]] = launched(rung("triton_specialised").matmul, *matrices(), **options)
    for block, code in tile_codes(jobs).items():
        assert code.count("warp specialisation") and code.num_warps == 12, block
        halves = re.findall(r"warp_group_dot .*?memdesc<(\d+)x", code.ttgir)
        assert halves == [str(block[0] // 2)] * 2, (block, halves)


@pytest.mark.long
def test_without_the_switch_the_same_warps_spill():
    [job] = launched(rung("triton_specialised").matmul, *matrices(), specialise=False)
    code = tile_codes({"off": job})["off"]
    assert code.num_warps == 4 and code.spilled_bytes > 0
    assert code.count("warp specialisation") == 0


@pytest.mark.long
def test_shared_memory_is_within_each_gpus_limit(codes):
    for place, code in codes.items():
        assert code.shared_bytes <= shared_limit(place[1]), (place, code)


@pytest.mark.long
def test_sizes_of_one_are_compiled_too():
    # A launch makes a constant of an argument that is 1: `M.to(…)` was no Triton then.
    one = torch.empty((1, 1), dtype=torch.float16)
    jobs = {}
    for name in ("triton_split_k", "triton_two_widths", "triton_persistent", "triton_specialised"):
        launches = launched(rung(name).matmul, one, one)
        jobs |= {(name, number): launch for number, launch in enumerate(launches)}
    assert all(code.registers for code in tile_codes(jobs).values())


@pytest.mark.long
def test_nothing_is_spilled_from_8_0_on(codes):
    spilled = {place: c.spilled_bytes for place, c in codes.items() if c.spilled_bytes}
    nvidia = {place: count for place, count in spilled.items() if place[1] != AMD}
    # Two registers, of a kernel for Hopper.
    assert nvidia.pop(("triton_uneven", (12, 0), "float16", 0), 0) <= 8
    # On 7.5 float16 is widened for the FMAs, and a block of 64³ has no room for that.
    assert set(nvidia) == {("triton_block_pointers", (7, 5), "float16", 0)}


def test_what_a_rung_takes_by_itself_on_an_older_gpu_is_what_was_planned(monkeypatch):
    t4 = backend.Backend("gpu", "for a test", backend.Gpu("Tesla T4", (7, 5), "13.0"))
    monkeypatch.setattr(programs, "select", lambda: t4)
    ((_, arguments, options),) = launched(rung("triton_swizzled").matmul, *matrices())
    assert arguments[12:15] == (64, 64, 16) and options["num_warps"] == 8


# --- tile_code itself -----------------------------------------------------------------------------


@triton.jit
def scaled(x, y, size, factor, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < size) * factor, mask=at < size)


def vectors(kind=torch.float32):
    return torch.empty(4096, dtype=kind, device="meta"), torch.empty(4096, device="meta")


@pytest.fixture(scope="module")
def small() -> dict[str, TileCode]:
    """Return small kernels, compiled in one process."""
    x, y = vectors()
    beside = torch.empty(4097)[1:]  # begins 4 bytes after a multiple of 16
    assert beside.data_ptr() % 16 == 4

    @triton.jit
    def local(x, y, BLOCK: tl.constexpr):
        at = tl.arange(0, BLOCK)
        tl.store(y + at, doubled(tl.load(x + at)))

    options = {"BLOCK": 1024, "num_warps": 4}
    return tile_codes(
        {
            "aligned": (scaled, (x, y, 4096, 2.0), options),
            "beside": (scaled, (beside, y, 4096, 2.0), options),
            "odd": (scaled, (x, y, 4095, 2.0), options),
            "one": (scaled, (x, y, 1, 2.0), options),
            "eight warps": (scaled, (x, y, 4096, 2.0), options | {"num_warps": 8}),
            "by position": (scaled, (x, y, 4096, 2.0, 1024), {}),
            "half": (scaled, (*vectors(torch.float16)[:1], y, 4096, 2.0), options),
            "local": (local, (x, y, 128), {}),
            "amd": (scaled, (x, y, 4096, 2.0), options, AMD),
        }
    )


@triton.jit
def doubled(value):
    return value + value


def test_a_kernel_is_compiled_as_a_launch_with_these_arguments_would(small):
    wide = r"ld.global.v4.b32"
    assert wide in small["aligned"].ptx and wide in small["by position"].ptx
    assert wide not in small["beside"].ptx  # a pointer that is no multiple of 16
    assert wide not in small["odd"].ptx  # a size that 16 does not divide ends within four
    assert "i32 {tt.divisibility = 16 : i32}" in small["aligned"].ttgir
    assert "i32 {tt.divisibility = 16 : i32}" not in small["odd"].ttgir
    assert small["one"].ttgir.count("i32") < small["odd"].ttgir.count("i32")  # it is a constant
    assert "!tt.ptr<f16>" in small["half"].ttgir and "!tt.ptr<f16>" not in small["aligned"].ttgir
    assert (small["aligned"].num_warps, small["eight warps"].num_warps) == (4, 8)


def test_a_kernel_of_a_function_is_taken_along_with_what_it_calls(small):
    assert small["local"].name == "local" and "local" in small["local"].ptx


def test_all_that_is_told_of_a_kernel(small):
    code = small["aligned"]
    assert (code.cc, code.spilled_bytes, code.shared_bytes) == ((9, 0), 0, 0)
    assert 8 <= code.registers <= 64
    if code.sass is None:
        with pytest.raises(NoCompiler, match="no cuobjdump is here"):
            code.instructions  # noqa: B018
    else:
        assert code.instructions["EXIT"] >= 1 and "LDG.E.128" in code.instructions
        assert "0x" not in code.sass.split("EXIT")[0].split("/*0000*/")[1].split(";")[0][:20]
    assert code.features == {} and code.count("tensor cores") == 0
    with pytest.raises(ValueError, match="no 'wgmmas'; count tensor cores, mma.sync, wgmma"):
        code.count("wgmmas")


def test_amds_code_is_no_ptx(small):
    code = small["amd"]
    assert "gfx942" in code.assembly and code.sass is None and code.registers > 0
    with pytest.raises(ValueError, match="gfx942 has no PTX"):
        code.ptx  # noqa: B018


def test_what_was_compiled_is_remembered(small, monkeypatch):
    def nobody(*arguments):
        raise AssertionError("it was compiled again")

    monkeypatch.setattr(tile_code, "elsewhere", nobody)
    monkeypatch.setattr(tile_code, "_compile_all", nobody)
    x, y = vectors()
    again = tile_code.tile_code(scaled, x, y, 4096, 2.0, BLOCK=1024, num_warps=4)
    assert again.ptx == small["aligned"].ptx and again.name == "scaled"
    with pytest.raises(AssertionError, match="compiled again"):
        tile_code.tile_code(scaled, x, y, 4096, 2.0, BLOCK=512, num_warps=4)


@pytest.mark.long
def test_what_the_compiler_says_is_passed_on():
    @triton.jit
    def wrong(x):
        tl.store(x, tl.dot(tl.load(x), 3))

    with pytest.raises(NotCompiled, match=r"wrong for compute capability 8\.0: .*Error"):
        tile_code.tile_code(wrong, vectors()[0], cc=(8, 0))
    with pytest.raises(NotCompiled, match="missing a required argument|missing .* argument"):
        tile_code.tile_code(scaled, vectors()[0], BLOCK=16)


def test_what_a_pass_writes_to_standard_error_is_gathered(capfd):
    errors = []
    with tile_code._errors_of_passes(errors):
        os.write(2, b"/a/b.py:7:3: error: 'op' does not fit\nmodule {\n  error in a dump\n}\n")
        os.write(2, b"/a/b.py:1:0: error: a pass failed\n")
    assert errors == ["'op' does not fit", "a pass failed"]
    print("after", file=sys.stderr, flush=True)
    assert capfd.readouterr().err == "after\n"


@pytest.mark.long
def test_a_pass_that_fails_says_why():
    one = torch.empty((4096, 4096), dtype=torch.float16)
    options = {"block": (128, 128, 64), "num_warps": 4, "halves": False, "flatten": False}
    [(kernel, *job)] = launched(rung("triton_persistent").matmul, one, one, **options)
    asking = edited(kernel, "flatten=FLATTEN", "flatten=FLATTEN, warp_specialize=True")
    try:
        code = tile_codes({"asked": (asking, *job, (9, 0))})["asked"]
    except NotCompiled as error:  # in 3.6 and 3.7
        assert re.search(r"PassManager::run failed; .*\w", str(error))
    else:
        assert code.registers


def test_an_autotuned_kernel_is_compiled_with_the_options_that_are_given(small, monkeypatch):
    tuned = triton.autotune([triton.Config({"BLOCK": 64})], key=["size"])(scaled)
    assert function_of(tuned) is function_of(scaled)
    monkeypatch.setattr(tile_code, "elsewhere", None)  # it is the one that was compiled
    monkeypatch.setattr(tile_code, "_compile_all", None)
    code = tile_code.tile_code(tuned, *vectors(), 4096, 2.0, BLOCK=1024, num_warps=4)
    assert code.ptx == small["aligned"].ptx


PTX = """
    wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {%r1};
    @%p1 mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%r1};
    tcgen05.mma.cta_group::1.kind::f16 [%r1];
    tcgen05.mma_fake; tcgen05.commit.cta_group::1; xmma.sync.no;
    ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r1};
    cp.async.cg.shared.global [ %r1 + 0 ], [ %rd1 + 0 ], 0x10, %r2;
    cp.async.ca.shared.global [ %r1 + 0 ], [ %rd1 + 0 ], 0x4, %r2;
    cp.async.commit_group; cp.async.wait_group 1;
    @%p1 cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1];
    cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes [%r1];
    @%p2 cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd1];
    cp.async.bulk.commit_group;
    fma.rn.f32 %f1, %f2, %f3, %f4; fma.rn.f32x2 %f1, %f2, %f3, %f4;
"""


def test_kinds_of_instructions_are_told_apart():
    ttgir = "ttg.warp_specialize(%a)\n ttg.warp_specialize.partitions\n"
    code = TileCode("kernel", (9, 0), 4, 32, 0, 0, ttgir, PTX, None)
    assert code.features == {
        "mma.sync": 1,
        "wgmma": 1,
        "tcgen05.mma": 1,
        "ldmatrix": 1,
        "cp.async": 2,
        "TMA loads": 2,
        "TMA stores": 1,
        "FMAs": 2,
        "warp specialisation": 1,
    }
    assert code.count("tensor cores") == 3


@pytest.mark.long
def test_without_cuobjdump_the_assembler_is_asked(monkeypatch):
    """In a process that compiles: here `_compile` is called as that process does."""
    if backend.select().name == "simulator":
        import os
        import subprocess
        import sys

        program = (
            "from tiled_matmul.kit import backend; backend.select()\n"
            "import test_tile_code as t, pytest\n"
            "t.test_without_cuobjdump_the_assembler_is_asked(pytest.MonkeyPatch())\n"
        )
        path = os.pathsep.join([str(Path(__file__).parents[1]), *filter(None, sys.path)])
        done = subprocess.run(
            [sys.executable, "-c", program],
            env=os.environ | {backend.OVERRIDE: "compiler", "PYTHONPATH": path},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        return

    def absent(name):
        raise NoCompiler("not here")

    a, b = torch.empty(64, 64, dtype=torch.float16), torch.empty(64, 64, dtype=torch.float16)
    ((kernel, arguments, options),) = launched(rung("triton_block_pointers").matmul, a, b)
    stand_ins = [tile_code._like(x) for x in arguments]
    spilling = tile_code._dumped((kernel, stand_ins, options, (7, 5)))
    job = tile_code._dumped(
        (scaled, [*map(tile_code._like, vectors()), 4096, 2.0, 1024], {}, (9, 0))
    )
    full = [tile_code._compile("kernel", each) for each in (job, spilling)]
    monkeypatch.setattr(tile_code, "find_tool", absent)
    short = [tile_code._compile("kernel", each) for each in (job, spilling)]
    for known, asked in zip(full, short, strict=True):
        assert (asked.registers, asked.spilled_bytes) == (known.registers, known.spilled_bytes)
        assert asked.sass is None and known.sass is not None
    assert short[0].spilled_bytes == 0 < short[1].spilled_bytes
