"""microscope/ptx: a kernel in PTX does what the ISA says, is counted, and is never guessed at."""

from __future__ import annotations

import numpy as np
import pytest

from tiled_matmul.microscope.ptx import PtxError, parse, run

HEAD = ".version 8.1\n.target sm_80\n.address_size 64\n.visible .entry k(\n"
PARAMETERS = "\t.param .u64 k_param_0,\n\t.param .u64 k_param_1\n)\n{\n"
PROLOGUE = """
    .reg .b32 %r<9>;
    .shared .align 4 .b8 tile[64];
    ld.param.b64 %rd1, [k_param_0];
    ld.param.b64 %rd2, [k_param_1];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd3, %r1, 4;
    add.s64 %rd1, %rd1, %rd3;
    add.s64 %rd2, %rd2, %rd3;
"""


def kernel(body):
    return parse(f"{HEAD}{PARAMETERS}{PROLOGUE}{body}\n ret;\n}}")


def result(body, values, threads=1):
    """Return what `body` stores at %rd2, one value for each thread, from `values` at %rd1."""
    x, y = np.array(values), np.zeros(threads, np.uint32)
    run(kernel(body), (1,), (threads,), (x, y))
    return y


def of_one(instruction, a, b=0):
    """Return what an instruction makes of two integers of 32 bits in %r2 and %r3, in %r4."""
    load = "ld.global.b32 %r2, [%rd1]; ld.global.b32 %r3, [%rd1+4];"
    values = np.array([a, b], np.int64).astype(np.uint32)
    return int(result(f"{load} {instruction}; st.global.b32 [%rd2], %r4;", values)[0])


CASES = (
    ("add.s32 %r4, %r2, %r3", 2**31 - 1, 1, 2**31),  # wraps around
    ("sub.u32 %r4, %r2, %r3", 1, 2, 2**32 - 1),
    ("mul.lo.s32 %r4, %r2, %r3", -3, 5, 2**32 - 15),
    ("mul.hi.u32 %r4, %r2, %r3", 2**32 - 1, 2**32 - 1, 2**32 - 2),
    ("mul.hi.s32 %r4, %r2, %r3", -1, 1, 2**32 - 1),
    ("mad.lo.s32 %r4, %r2, %r3, 7", 3, 4, 19),
    ("shl.b32 %r4, %r2, %r3", 1, 31, 2**31),
    ("shl.b32 %r4, %r2, %r3", 1, 32, 0),
    ("shr.u32 %r4, %r2, %r3", 2**31, 31, 1),
    ("shr.s32 %r4, %r2, %r3", -8, 1, 2**32 - 4),
    ("div.s32 %r4, %r2, %r3", -7, 2, 2**32 - 3),  # towards 0
    ("rem.s32 %r4, %r2, %r3", -7, 2, 2**32 - 1),
    ("max.s32 %r4, %r2, %r3", -1, 1, 1),
    ("max.u32 %r4, %r2, %r3", -1, 1, 2**32 - 1),
    ("setp.lt.s32 %p1, %r2, %r3; selp.b32 %r4, 5, 6, %p1", -1, 0, 5),
    ("setp.lt.u32 %p1, %r2, %r3; selp.b32 %r4, 5, 6, %p1", -1, 0, 6),
    ("mov.b32 %r4, 1; setp.eq.s32 %p1, %r2, 4; @%p1 mov.b32 %r4, 2", 4, 0, 2),
    ("mov.b32 %r4, 1; setp.eq.s32 %p1, %r2, 4; @!%p1 mov.b32 %r4, 2", 4, 0, 1),
    ("setp.lt.f32 %p1, %r2, %r3; selp.b32 %r4, 5, 6, %p1", 0xBF800000, 0x3F800000, 5),  # -1, 1
    ("setp.lt.f32 %p1, %r2, %r3; selp.b32 %r4, 5, 6, %p1", 0x7FC00000, 0x3F800000, 6),  # NaN
    ("setp.ne.f32 %p1, %r2, %r3; selp.b32 %r4, 5, 6, %p1", 0x7FC00000, 0x3F800000, 6),
    ("ld.global.s8 %r5, [%rd1]; add.s32 %r4, %r5, 1", 0x80, 0, 2**32 - 127),
    ("cvt.u64.u32 %rd9, %r2; cvt.u32.u64 %r4, %rd9", 2**32 - 1, 0, 2**32 - 1),
)


@pytest.mark.parametrize(("instruction", "a", "b", "wanted"), CASES)
def test_an_instruction_does_what_the_isa_says(instruction, a, b, wanted):
    assert of_one(instruction, a, b) == wanted


def test_fma_rounds_once():
    load = "ld.global.b32 %r2, [%rd1];"
    body = f"{load} fma.rn.f32 %r4, %r2, %r2, 0fBF800000; st.global.b32 [%rd2], %r4;"
    x = np.float32(1 + 2**-12)
    got = result(body, np.array([x], np.float32))[:1].view(np.float32)[0]
    assert got == np.float32(2**-11 + 2**-24) != x * x - np.float32(1)


COPY = """
    mov.b32 %r2, tile;
    shl.b32 %r3, %r1, 2;
    add.s32 %r2, %r2, %r3;
    cp.async.ca.shared.global [%r2], [%rd1], 4;
    {wait}
    bar.sync 0;
    mov.b32 %r5, tile;
    sub.s32 %r6, 12, %r3;
    add.s32 %r5, %r5, %r6;
    ld.shared.b32 %r7, [%r5];
    st.global.b32 [%rd2], %r7;
"""


@pytest.mark.parametrize(("wait", "wanted"), [("cp.async.wait_all;", [4, 3, 2, 1]), ("", [0] * 4)])
def test_a_copy_arrives_when_it_is_waited_for(wait, wanted):
    values = np.array([1, 2, 3, 4], np.uint32)
    assert result(COPY.format(wait=wait), values, threads=4).tolist() == wanted


def test_what_threads_do_is_counted():
    x, y = np.arange(4, dtype=np.uint32), np.zeros(4, np.uint32)
    ran = run(kernel(COPY.format(wait="cp.async.wait_all;")), (1,), (4,), (x, y))
    assert [(each.thread[0], each.array, each.begin, each.to) for each in ran.copies] == [
        (i, 0, 4 * i, 4 * i) for i in range(4)
    ]
    assert ran.of("cp.async") == {(i, 0, 0): 1 for i in range(4)} == ran.of("st.global")
    assert ran.of("ld.global") == {}


WRONG = {
    "this instruction is not known: sin.approx.f32 %r4, %r2": "sin.approx.f32 %r4, %r2;",
    "this instruction is not known: add.sat.s32 %r4, 1, 2": "add.sat.s32 %r4, 1, 2;",
    "this instruction is not known: mul.rz.f32 %r4, %r2, %r2": "mul.rz.f32 %r4, %r2, %r2;",
    "this instruction is not known: cvt.sat.u8.s32 %r4, 1": "cvt.sat.u8.s32 %r4, 1;",
    "this instruction is not known: setp.ltu.f32 %p1, %r2, %r3": "setp.ltu.f32 %p1, %r2, %r3;",
    "this instruction is not known: bar.sync 1, 64": "bar.sync 1, 64;",
    "%p3 is read before": "@%p3 mov.b32 %r4, 1;",
    "%r8 is read before it is written": "add.s32 %r4, %r8, 1;",
    "bytes 64 to 68 of shared memory, which has 64": "ld.shared.b32 %r4, [tile+64];",
    "bytes 16 to 20 of array 0, which has 16": "ld.global.b32 %r4, [%rd1+16];",
    "address 0x10 is in no array": "mov.b64 %rd5, 16; ld.global.b32 %r4, [%rd5];",
    "thread (0, 0, 0) of block (0, 0, 0) divides by 0": "div.u32 %r4, 1, 0;",
}


@pytest.mark.parametrize("message", WRONG)
def test_what_cannot_be_run_is_quoted(message):
    with pytest.raises(PtxError) as error:
        run(kernel(WRONG[message]), (1,), (1,), (np.zeros(4, np.uint32), np.zeros(1, np.uint32)))
    assert message in str(error.value)


def test_a_barrier_that_some_threads_do_not_reach_is_an_error():
    body = "setp.eq.s32 %p1, %r1, 0; @%p1 bra $end; bar.sync 0;\n$end:"
    with pytest.raises(PtxError, match=r"3 threads wait for 1 that ended"):
        result(body, np.zeros(4, np.uint32), threads=4)


def test_arguments_and_files_that_do_not_fit_are_named():
    with pytest.raises(PtxError, match=r"k takes 2 arguments, got 1"):
        run(kernel(""), (1,), (1,), (np.zeros(1),))
    with pytest.raises(PtxError, match=r"k_param_1 has 8 bytes, got 12"):
        run(kernel(""), (1,), (1,), (np.zeros(1), (np.zeros(1), b"1234")))
    with pytest.raises(PtxError, match=r"must have one kernel, this one has 0"):
        parse("")
