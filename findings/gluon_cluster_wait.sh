#!/usr/bin/env bash
# Package: triton 3.9.0, numpy 2.4.6
# Date: 2026-11-28
# Behaviour: mbarrier.wait on a barrier that the blocks of a cluster share lets only the first block
#     wait; the others go on at once. A block that must not go on needs a barrier of its own, too.
# Guess: Whoever calls wait waits, as for a barrier that each block has for itself.
# Seen:
#     a barrier in each block: every block waits
#     one barrier for both blocks: the first block waits, the other goes on

source "$(dirname "$0")/lib.sh"
install triton --no-deps triton==3.9.0 numpy==2.4.6
judge "$(run triton <<'END'
import re

import triton
from triton.backends.compiler import GPUTarget
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon._runtime import GluonASTSource
from triton.experimental.gluon.language.nvidia.hopper import mbarrier


@gluon.jit
def meet(out, LAYOUT: gl.constexpr, BARRIERS: gl.constexpr):
    barrier = gl.allocate_shared_memory(gl.int64, [BARRIERS], LAYOUT)
    mbarrier.init(barrier, count=1)
    mbarrier.arrive(barrier)
    mbarrier.wait(barrier, 0)
    gl.store(out, 1)


def waiting(bases, barriers):
    signature = {"out": "*i32", "LAYOUT": "constexpr", "BARRIERS": "constexpr"}
    layout = mbarrier.MBarrierLayout(cga_layout=bases)
    source = GluonASTSource(meet, signature, {(1,): layout, (2,): barriers})
    code = triton.compile(source, GPUTarget("cuda", 90, 32), {"num_ctas": 2}).asm["ptx"]
    before = code[: code.index("mbarrier.try_wait")].splitlines()[-6:]
    skips = any(re.search(r"@!%p\d+ bra", line) for line in before)
    asks = "%cluster_ctarank" in code[: code.index("mbarrier.try_wait")]
    return "the first block waits, the other goes on" if skips and asks else "every block waits"


print("a barrier in each block:", waiting([[1]], 2))
print("one barrier for both blocks:", waiting([[0]], 1))
END
)"
