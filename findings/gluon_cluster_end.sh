#!/usr/bin/env bash
# Package: triton 3.8.0 and 3.9.0, numpy 2.4.6
# Date: 2026-11-28
# Behaviour: In Triton 3.8, a block of a cluster ends without waiting for others that still arrive at
#     a barrier in its shared memory. Triton 3.9 puts a barrier of the cluster before the end.
# Guess: The compiler, which makes blocks wait for each other after mbarrier.init, also does so at
#     the end, where shared memory goes away.
# Seen:
#     triton 3.8.0: waits for the cluster after the last arrival: no
#     triton 3.9.0: waits for the cluster after the last arrival: yes

source "$(dirname "$0")/lib.sh"
install old --no-deps triton==3.8.0 numpy==2.4.6
install new --no-deps triton==3.9.0 numpy==2.4.6
program=$(cat <<'END'
import triton
from triton.backends.compiler import GPUTarget
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon._runtime import GluonASTSource
from triton.experimental.gluon.language.nvidia.hopper import mbarrier


@gluon.jit
def meet(LAYOUT: gl.constexpr):
    barrier = gl.allocate_shared_memory(gl.int64, [1], LAYOUT)
    mbarrier.init(barrier, count=1)
    mbarrier.arrive(barrier)


shared = mbarrier.MBarrierLayout(cga_layout=[[0]])  # both blocks arrive at the first one's
source = GluonASTSource(meet, {"LAYOUT": "constexpr"}, {(0,): shared})
code = triton.compile(source, GPUTarget("cuda", 90, 32), {"num_ctas": 2}).asm["ptx"]
after = code.rpartition("mbarrier.arrive.shared::cluster")
assert after[1], "no block arrives at another's barrier"
waits = "yes" if "barrier.cluster.wait" in after[2] else "no"
print(f"triton {triton.__version__}: waits for the cluster after the last arrival: {waits}")
END
)
judge "$(run old <<<"$program")
$(run new <<<"$program")"
