#!/usr/bin/env bash
# Package: triton 3.7.1 and 3.9.0, numpy 2.4.6
# Date: 2026-11-27
# Behaviour: For sm_90, warp_specialize=True takes effect with 4 warps. With 8 the compiler ignores
#     it, and neither warns nor fails. For sm_100 both work.
# Guess: A kernel that asks for warp specialisation gets it, or a message why not.
# Seen:
#     3.7.1: sm_90: 4 warps True, 8 warps False; sm_100: 4 warps True, 8 warps True
#     3.9.0: sm_90: 4 warps True, 8 warps False; sm_100: 4 warps True, 8 warps True

source "$(dirname "$0")/lib.sh"
seen=""
for version in 3.7.1 3.9.0; do
    install "$version" --no-deps "triton==$version" numpy==2.4.6
    seen+="$version: $(run "$version" <<'END'
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def product(a, b, c, M, N, K, TM: tl.constexpr, TN: tl.constexpr, TK: tl.constexpr):
    a_tiles = tl.make_tensor_descriptor(a, [M, K], [K, 1], [TM, TK])
    b_tiles = tl.make_tensor_descriptor(b, [K, N], [N, 1], [TK, TN])
    c_tiles = tl.make_tensor_descriptor(c, [M, N], [N, 1], [TM, TN])
    row, column = tl.program_id(0) * TM, tl.program_id(1) * TN
    total = tl.zeros((TM, TN), tl.float32)
    for k in tl.range(0, K, TK, warp_specialize=True):
        total = tl.dot(a_tiles.load([row, k]), b_tiles.load([k, column]), total)
    c_tiles.store([row, column], total.to(tl.float16))


names = ["a", "b", "c", "M", "N", "K", "TM", "TN", "TK"]
signature = dict(zip(names, ["*fp16"] * 3 + ["i32"] * 3 + ["constexpr"] * 3))
places = []
for capability in (90, 100):
    used = []
    for warps in (4, 8):
        source = ASTSource(product, signature, constexprs={(6,): 128, (7,): 128, (8,): 64})
        target, options = GPUTarget("cuda", capability, 32), {"num_warps": warps}
        code = triton.compile(source, target=target, options=options).asm["ttgir"]
        used.append(f"{warps} warps {'ttg.warp_specialize(' in code}")
    places.append(f"sm_{capability}: {', '.join(used)}")
print("; ".join(places))
END
    )"$'\n'
done
judge "${seen%$'\n'}"
