#!/usr/bin/env bash
# Package: warp-lang 1.19.0, numpy 2.4.6
# Date: 2026-11-29
# Behaviour: On tiles of float16, acc += wp.tile_matmul(a, b) sums in float16: 300 products,
#     each of 300 and 1, give infinity. wp.tile_matmul(a, b, acc) with a tile of float32 sums in
#     float32.
# Guess: Both are spellings of one multiply-and-add, with sums in float32, as on tensor cores.
# Seen:
#     acc += wp.tile_matmul(a, b): inf
#     wp.tile_matmul(a, b, acc): 90000.0

source "$(dirname "$0")/lib.sh"
install warp warp-lang==1.19.0 numpy==2.4.6
program=$(cat <<'END'
import numpy as np
import warp as wp

wp.config.quiet = True
K = 300


@wp.kernel(enable_backward=False)
def added(a: wp.array2d(dtype=wp.float16), b: wp.array2d(dtype=wp.float16), c: wp.array2d(dtype=wp.float32)):
    acc = wp.tile_zeros(shape=(4, 4), dtype=wp.float16)
    acc += wp.tile_matmul(wp.tile_load(a, shape=(4, K)), wp.tile_load(b, shape=(K, 4)))
    wp.tile_store(c, wp.tile_astype(acc, dtype=wp.float32))


@wp.kernel(enable_backward=False)
def passed(a: wp.array2d(dtype=wp.float16), b: wp.array2d(dtype=wp.float16), c: wp.array2d(dtype=wp.float32)):
    acc = wp.tile_zeros(shape=(4, 4), dtype=wp.float32)
    wp.tile_matmul(wp.tile_load(a, shape=(4, K)), wp.tile_load(b, shape=(K, 4)), acc)
    wp.tile_store(c, acc)


a, b = np.full((4, K), 300, np.float16), np.ones((K, 4), np.float16)
for name, kernel in (("acc += wp.tile_matmul(a, b)", added), ("wp.tile_matmul(a, b, acc)", passed)):
    c = wp.zeros((4, 4), dtype=wp.float32, device="cpu")
    given = [wp.array(x, dtype=wp.float16, device="cpu") for x in (a, b)]
    wp.launch_tiled(kernel, dim=[1], inputs=[*given, c], block_dim=32, device="cpu")
    print(f"{name}: {c.numpy()[0, 0]}")
END
)
seen=$(run warp <<<"$program" | grep '^acc\|^wp') # without Warp's greeting
judge "$seen"
