#!/usr/bin/env bash
# Package: triton 3.9.0, numpy 2.4.6
# Date: 2026-11-28
# Behaviour: tma.async_load with multicast=True is one copy by the first block of the cluster, of the
#     whole tile, to all blocks. The others copy nothing, so the first block alone has to know that
#     everyone's buffer is free.
# Guess: Each block copies its part of the tile to all blocks, as CUTLASS does.
# Seen:
#     multicast=False: blocks that copy: 2, to themselves
#     multicast=True: blocks that copy: 1, to the blocks of mask 0b11

source "$(dirname "$0")/lib.sh"
install triton --no-deps triton==3.9.0 numpy==2.4.6
judge "$(run triton <<'END'
import re

import triton
from triton.backends.compiler import GPUTarget
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon._runtime import GluonASTSource
from triton.experimental.gluon.language.nvidia.hopper import mbarrier, tma


@gluon.jit
def fill(matrix, out, LAYOUT: gl.constexpr, MULTICAST: gl.constexpr):
    tile = gl.allocate_shared_memory(gl.float16, [64, 64], LAYOUT)
    barrier = mbarrier.allocate_mbarrier()
    mbarrier.init(barrier, count=1)
    mbarrier.expect(barrier, matrix.nbytes_per_cta)
    tma.async_load(matrix, [0, 0], barrier, tile, multicast=MULTICAST)
    mbarrier.wait(barrier, 0)
    gl.store(out, 1)


for multicast in (False, True):
    layout = gl.NVMMASharedLayout.get_default_for([64, 64], gl.float16, cga_layout=[[0, 0]])
    signature = {"matrix": f"tensordesc<fp16[64, 64],{layout!r}>", "out": "*i32"}
    signature |= {"LAYOUT": "constexpr", "MULTICAST": "constexpr"}
    source = GluonASTSource(fill, signature, {(2,): layout, (3,): multicast})
    code = triton.compile(source, GPUTarget("cuda", 90, 32), {"num_ctas": 2}).asm["ptx"]
    before, copy, after = re.split(r"(cp\.async\.bulk\.tensor\S+)", code, maxsplit=1)
    mask = re.search(r"mov\.b16\s+%rs1, (\d+)", before)
    first = "%cluster_ctarank" in before.rpartition("expect_tx")[2]
    to = f"the blocks of mask {int(mask[1]):#b}" if "multicast::cluster" in copy else "themselves"
    print(f"multicast={multicast}: blocks that copy: {1 if first else 2}, to {to}")
END
)"
