#!/usr/bin/env bash
# Package: triton 3.9.0, numpy 2.4.6
# Date: 2026-11-28
# Behaviour: In a Gluon kernel without clusters, nothing stands between `mbarrier.init` and the first
#     copy by TMA that is to count at that barrier: no fence of the asynchronous proxy, and none for
#     barriers. With `fence_async_shared()` in the kernel, there is one.
# Guess: The compiler fences barriers that it sees initialised, as NVIDIA's guide asks for, and as
#     it does itself where blocks of a cluster share them.
# Seen:
#     triton 3.9.0: a fence between init and copy: no
#     with fence_async_shared: yes

source "$(dirname "$0")/lib.sh"
install new --no-deps triton==3.9.0 numpy==2.4.6
program=$(cat <<'END'
import triton
from triton.backends.compiler import GPUTarget
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon._runtime import GluonASTSource
from triton.experimental.gluon.language.nvidia.hopper import fence_async_shared, mbarrier, tma


@gluon.jit
def copy(a, FENCED: gl.constexpr):
    tile = gl.allocate_shared_memory(a.dtype, a.block_shape, a.layout)
    full = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(full, count=1)
    if FENCED:
        fence_async_shared()
    mbarrier.expect(full, 64 * 64 * 2)
    tma.async_load(a, [0, 0], full, tile)
    mbarrier.wait(full, 0)


def fenced(switch):
    layout = gl.NVMMASharedLayout.get_default_for([64, 64], gl.float16)
    kind = f"tensordesc<fp16[64, 64],{layout!r}>"
    source = GluonASTSource(copy, {"a": kind, "FENCED": "constexpr"}, {(1,): switch})
    code = triton.compile(source, GPUTarget("cuda", 90, 32), {}).asm["ptx"]
    start, end = code.index("mbarrier.init"), code.index("cp.async.bulk.tensor")
    return "yes" if "fence." in code[start:end] else "no"


print(f"triton {triton.__version__}: a fence between init and copy: {fenced(False)}")
print(f"with fence_async_shared: {fenced(True)}")
END
)
judge "$(run new <<<"$program")"
