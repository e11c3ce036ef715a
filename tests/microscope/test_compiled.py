"""What the compiler made of a kernel: from a text of cuobjdump's, and of kernels compiled here."""

import subprocess
import sys
from collections import Counter

import pytest
from numba import cuda, float32, types

from tiled_matmul.kit.unroll import unroll, unrolled
from tiled_matmul.ladder import cuda_thread_tile_1d, cuda_thread_tile_2d, cuda_vectorised
from tiled_matmul.machine import backend
from tiled_matmul.microscope.compiled import cuda as compiled
from tiled_matmul.microscope.compiled.cuda import (
    OPCODES,
    Compiled,
    NoCompiler,
    compiled_all,
    read,
    try_compiled,
)

MATRICES = (types.Array(float32, 2, "C"),) * 3

USAGE = " Function kernel:\n  REG:40 STACK:16 SHARED:2048 LOCAL:8 CONSTANT[0]:600 TEXTURE:0\n"
LISTING = """
        /*0000*/          IMAD.MOV.U32 R1, RZ, RZ, c[0x0][0x28] ; /* 0x00 */
        /*0010*/              @!P0 LDG.E.128 R4, desc[UR8][R2.64] ; /* 0x00 */
        /*0020*/          STS [R98], R109 ; /* 0x00 */
        /*0030*/          LDS.128 R32, [R110] ; /* 0x00 */
        /*0040*/          LDS.U.128 R36, [R110] ; /* 0x00 */
        /*0050*/          LDS R40, [R110] ; /* 0x00 */
        /*0060*/          FFMA R1, R2, R3, R4 ; /* 0x00 */
        /*0070*/          FFMA R1, R2, R3, R4 ; /* 0x00 */
        /*0080*/               @P0 BRA 0x30 ; /* 0x00 */
        /*0090*/          BAR.SYNC.DEFER_BLOCKING 0x0 ; /* 0x00 */
        /*00a0*/              @!P1 BRA 0x10 ; /* 0x00 */
        /*00b0*/          STL [R1], R2 ; /* 0x00 */
        /*00c0*/          BRA 0xd0 ; /* 0x00 */
        /*00d0*/          EXIT ; /* 0x00 */
        /*00e0*/          BRA 0xe0; /* 0x00 */
"""


def test_a_listing_is_read():
    made = read("kernel", (8, 0), USAGE, LISTING)
    assert (made.registers, made.spilled_bytes, made.shared_bytes) == (40, 24, 2048)
    assert made.whole.total() == 15
    assert made.inner == Counter({"LDS.128": 1, "LDS.U.128": 1, "LDS": 1, "FFMA": 2, "BRA": 1})
    assert made.around == Counter(
        {"LDG.E.128": 1, "STS": 1, "BAR.SYNC.DEFER_BLOCKING": 1, "BRA": 1}
    )
    assert made.count("shared loads") == 3
    assert made.count("shared loads of 16 bytes") == 2
    assert made.count("global loads of 16 bytes", "around") == 1
    assert made.count("spill loads and stores", "whole") == 1
    assert made.count("integer", "whole") == 1
    # Eight products: four turns of the inner loop, 6 instructions each, and 4 around them.
    assert made.slots(8) == (4 * 6 + 4) / 8
    assert made.slots(8, "shared loads") == 4 * 3 / 8


@pytest.mark.parametrize(
    ("instructions", "waiting"),
    [
        (["FFMA R0, R2, R4, R0"], 1),
        (["FFMA R1, R3, -R5, R1"], 1),
        (["FFMA R0, R2, R5, R0"], 0),  # a factor out of the other bank
        (["FFMA R0, R2, R2, R0"], 0),  # one register is fetched once
        (["FFMA R0, R2, c[0x0][0x10], R0"], 0),
        (["FFMA R1, R2.reuse, R5, R1", "FFMA R0, R2, R4, R0"], 0),
        (["FFMA R1, R2.reuse, R5, R1", "FFMA R0, R4, R2, R0"], 1),  # kept for another place
        (["FFMA R1, R2.reuse, R5, R1", "LDS R9, [R8]", "FFMA R0, R2, R4, R0"], 1),  # not kept
        (["IMAD R0, R2, R4, R0"], 0),
    ],
)
def test_operands_out_of_one_register_bank(instructions, waiting):
    lines = [*instructions, "FFMA R1, R2, R3, R1", "BRA 0x0", "EXIT"]
    listing = "\n".join(f"/*{16 * at:04x}*/ {line} ;" for at, line in enumerate(lines))
    made = read("kernel", (9, 0), USAGE, listing)
    assert made.same_bank == waiting
    floats = [line for line in lines if line.startswith("FFMA")]
    assert made.examples("multiply-adds", 9) == floats
    assert made.examples("multiply-adds") == floats[:1]


def test_the_kilobyte_of_the_system_is_not_the_kernels():
    assert read("kernel", (9, 0), USAGE, LISTING).shared_bytes == 1024


@pytest.mark.parametrize(
    ("usage", "listing"),
    [(USAGE, ""), ("", LISTING), (USAGE + USAGE, LISTING), (USAGE, LISTING + LISTING)],
)
def test_anything_but_one_kernel_is_refused(usage, listing):
    with pytest.raises(ValueError, match="one was wanted"):
        read("kernel", (9, 0), usage, listing)


def test_a_kernel_without_loops_has_no_inner_loop():
    made = read("kernel", (9, 0), USAGE, "/*0000*/ EXIT ;\n/*0010*/ BRA 0x10;\n")
    assert not made.inner and not made.around
    with pytest.raises(ValueError, match="no loop with a multiply-add"):
        made.slots(1)


def test_unknown_kinds_and_unknown_instructions_are_errors():
    made = read("kernel", (9, 0), USAGE, LISTING)
    with pytest.raises(ValueError, match="no 'loads' in 'inner'; count multiply-adds"):
        made.count("loads")
    with pytest.raises(ValueError, match="in 'outside'"):
        made.count("barriers", "outside")
    silent = Compiled("kernel", (9, 0), 40, 0, 0, Counter(), Counter(), Counter())
    with pytest.raises(NoCompiler, match="instructions of kernel are not known"):
        silent.count("barriers")


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("LDSM.16.M88.4", None),
        ("LDGSTS.E.BYPASS.128", "asynchronous copies"),
        ("LDGDEPBAR", None),
        ("UIADD3.X", "integer"),
        ("DFMA", "multiply-adds"),
        ("LDL.LU", "spill loads and stores"),
        ("MOV", None),
    ],
)
def test_kinds_of_some_instructions(name, kind):
    listing = f"/*0000*/ {name} R1 ;\n"
    made = read("kernel", (9, 0), USAGE, listing)
    found = [each for each in OPCODES if made.count(each, "whole")]
    assert found == ([kind] if kind else [])


# Kernels, compiled here


def compiled_here(kernels):
    """Return {name: Compiled}, compiled in one process."""
    try:
        return compiled_all(kernels, (9, 0))
    except NoCompiler as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="module")
def made():
    return compiled_here(
        {
            "vectorised": (cuda_vectorised.cuda_vectorised_kernel, *MATRICES),
            "helped": (helped, *MATRICES),
            "unrolled": (written_out, *MATRICES),
            "few registers": (few_registers, *MATRICES),
        }
    )


@pytest.fixture(scope="module")
def tiles():
    return compiled_here(
        {
            "1d": (cuda_thread_tile_1d.cuda_thread_tile_1d_kernel, *MATRICES),
            "2d": (cuda_thread_tile_2d.kernel(), *MATRICES),
            "16×16": (cuda_thread_tile_2d.kernel(16, 16), *MATRICES),
        }
    )


SIZE = 8


@cuda.jit(device=True)
def product(x, y):
    return x * y


@cuda.jit
def helped(a, b, c):
    i = cuda.grid(1)
    acc = float32(0)
    for k in range(a.shape[1]):
        acc += product(a[i, k], b[k, i])
    c[i, i] = acc


@cuda.jit
@unrolled
def written_out(a, b, c):
    i = cuda.grid(1)
    acc = float32(0)
    for start in range(0, a.shape[1], SIZE):
        for k in unroll(SIZE):
            acc += a[i, start + k] * b[start + k, i]
    c[i, i] = acc


few_registers = cuda.jit(max_registers=64)(cuda_vectorised.cuda_vectorised_kernel.py_func)


@pytest.mark.long
def test_8x8_tiles_stay_in_registers_and_load_by_fours(made, tiles):
    vectorised = made["vectorised"]
    for found in (tiles["2d"], vectorised):
        assert 64 < found.registers <= 128 and not found.spilled_bytes, found
        steps, rest = divmod(found.count("multiply-adds"), 64)  # the loop over k is unrolled
        assert steps and not rest
        loads = found.count("shared loads"), found.count("shared loads of 16 bytes")
        assert loads == (4 * steps, 4 * steps)
    assert vectorised.count("global loads of 16 bytes", "around") == 2
    assert tiles["2d"].count("global loads", "around") == 8
    assert vectorised.slots(512) < tiles["2d"].slots(512) < tiles["1d"].slots(64)


def spills(found):
    return found.spilled_bytes > 0 and found.count("spill loads and stores", "whole") > 0


def test_a_spill_shows(made):
    assert spills(made["few registers"]) and made["few registers"].registers <= 64


@pytest.mark.long
def test_a_tile_of_16x16_spills(tiles):
    assert spills(tiles["16×16"])


def test_device_functions_and_loops_written_out_arrive(made):
    assert made["helped"].count("multiply-adds") >= 1
    assert made["unrolled"].count("multiply-adds") % SIZE == 0
    assert made["helped"].shared_bytes == 0


def test_the_compilers_own_process_says_the_same(made):
    program = (
        "from tiled_matmul.kit import backend; backend.select()\n"
        "from numba import types\n"
        "from tiled_matmul.microscope.compiled.cuda import compiled\n"
        "from tiled_matmul.ladder import cuda_vectorised\n"
        "m = (types.Array(types.float32, 2, 'C'),) * 3\n"
        "c = compiled(cuda_vectorised.cuda_vectorised_kernel, *m, cc=(9, 0))\n"
        "print(c.registers, c.spilled_bytes, c.shared_bytes, sorted(c.whole.items()))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={**compiled.os.environ, backend.OVERRIDE: "compiler"},
    )
    ours = made["vectorised"]
    expected = (ours.registers, ours.spilled_bytes, ours.shared_bytes, sorted(ours.whole.items()))
    assert done.stdout.strip() == " ".join(map(str, expected))


@cuda.jit
def nonsense(a, b, c):
    c[0, 0] = a.no_such_thing


def test_what_numba_refuses_is_said(made):
    with pytest.raises(Exception, match="no_such_thing"):
        compiled.compiled(nonsense, *MATRICES, cc=(9, 0))


def test_tensors_stand_for_their_types(made):
    import torch

    tensors = [torch.zeros(2, 2) for _ in range(3)]
    kernel = cuda_vectorised.cuda_vectorised_kernel
    assert compiled._signature(tensors) == MATRICES
    assert compiled.compiled(kernel, *tensors, cc=(9, 0)).whole == made["vectorised"].whole


def test_without_tools_the_message_says_what_is_missing(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(compiled, "TOOLKIT", tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CUDA_HOME", raising=False)
    job = {"kernel": (cuda_thread_tile_1d.cuda_thread_tile_1d_kernel, *MATRICES)}
    other = (7, 5)  # not this machine's, so that no launch can stand in
    with pytest.raises(NoCompiler, match="cuobjdump is not here; it comes with"):
        compiled_all(job, other)
    assert try_compiled(job, other) == {}
    assert "Nothing is compiled here: cuobjdump" in capsys.readouterr().out


def test_a_tool_in_cuda_home_is_found(monkeypatch, tmp_path):
    tool = tmp_path / "bin" / "cuobjdump"
    tool.parent.mkdir()
    tool.write_text("")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    assert compiled.find_tool("cuobjdump") == str(tool)


@pytest.mark.gpu
def test_the_gpu_runs_what_was_counted():
    kernel = cuda_vectorised.cuda_vectorised_kernel
    found = compiled.compiled(kernel, *MATRICES)
    launched = compiled._as_launched("kernel", kernel, MATRICES, found.cc)
    assert (found.registers, found.spilled_bytes) == (launched.registers, launched.spilled_bytes)
