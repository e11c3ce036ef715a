"""C (M, N) = A (M, K) @ B (K, N) in JAX's Pallas, through Triton: one tile a program.

There are no masks: M, N and K must be multiples of BM, BN and BK.
"""

import functools

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plgpu

BM = 128
BN = 128
BK = 64
WARPS = 8
STAGES = 3
PRECISION = None


def pallas_tile(a_ref, b_ref, c_ref):
    def step(number, acc):
        at = pl.ds(number * BK, BK)
        return acc + plgpu.dot(a_ref[:, at], b_ref[at, :], precision=PRECISION)

    steps = a_ref.shape[1] // BK
    acc = jax.lax.fori_loop(0, steps, step, jnp.zeros((BM, BN), jnp.float32))
    c_ref[...] = acc.astype(c_ref.dtype)


@functools.partial(jax.jit, static_argnames="interpret")
def matmul(a, b, interpret=False):
    """Return a (M, K) · b (K, N) as (M, N), of a's dtype, from whole tiles."""
    (m, k), n = a.shape, b.shape[1]
    return pl.pallas_call(
        pallas_tile,
        grid=(m // BM, n // BN),
        in_specs=[
            pl.BlockSpec((BM, k), lambda i, j: (i, 0)),
            pl.BlockSpec((k, BN), lambda i, j: (0, j)),
        ],
        out_specs=pl.BlockSpec((BM, BN), lambda i, j: (i, j)),
        out_shape=jax.ShapeDtypeStruct((m, n), a.dtype),
        compiler_params=plgpu.CompilerParams(num_warps=WARPS, num_stages=STAGES),
        interpret=interpret,
    )(a, b)
