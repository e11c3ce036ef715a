#!/usr/bin/env bash
# Package: triton 3.7.1 and 3.8.0, numpy 2.4.6
# Date: 2026-11-28
# Behaviour: In Triton 3.7, a barrier that the blocks of a cluster share by its layout is not shared:
#     each block arrives at the barrier in its own shared memory, and the barrier counts one arrival
#     where two were asked for. Triton 3.8 compiles the same kernel as its layout says.
# Guess: A layout that compiles without a message is obeyed: both blocks arrive at one barrier.
# Seen:
#     triton 3.7.1: 1 arrival is awaited, and each block arrives in its own shared memory
#     triton 3.8.0: 2 arrivals are awaited, and both blocks arrive in the first one's

source "$(dirname "$0")/lib.sh"
install old --no-deps triton==3.7.1 numpy==2.4.6
install new --no-deps triton==3.8.0 numpy==2.4.6
program=$(cat <<'END'
import re

import triton
from triton.backends.compiler import GPUTarget
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon._runtime import GluonASTSource
from triton.experimental.gluon.language.nvidia.hopper import mbarrier


@gluon.jit
def meet(out, LAYOUT: gl.constexpr):
    barrier = gl.allocate_shared_memory(gl.int64, [1], LAYOUT)
    mbarrier.init(barrier, count=1)
    mbarrier.arrive(barrier)
    mbarrier.wait(barrier, 0)
    gl.store(out, 1)


shared = mbarrier.MBarrierLayout(cga_layout=[[0]])  # both blocks have the same barrier
source = GluonASTSource(meet, {"out": "*i32", "LAYOUT": "constexpr"}, {(1,): shared})
code = triton.compile(source, GPUTarget("cuda", 90, 32), {"num_ctas": 2}).asm["ptx"]
count = int(re.search(r"mbarrier\.init\.\S+ \[%r\d+\], (\d+)", code)[1])
one = "mbarrier.arrive.shared::cluster" in code
print(
    f"triton {triton.__version__}: {count} arrival{'s are' if count > 1 else ' is'} awaited, and "
    + ("both blocks arrive in the first one's" if one else "each block arrives in its own shared memory")
)
END
)
judge "$(run old <<<"$program")
$(run new <<<"$program")"
