"""C (M, N) = A (M, K) @ B (K, N) in JAX's Pallas, with its Triton back end: one tile a program."""

import functools

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plt

BM = 128
BN = 128
BK = 64
WARPS = 8
STAGES = 3
PRECISION = None


def pallas_tile(a, b, c, *, m, n, k):
    i = (pl.program_id(0) * BM + jnp.arange(BM))[:, None]
    j = (pl.program_id(1) * BN + jnp.arange(BN))[None, :]

    def step(number, acc):
        at = number * BK + jnp.arange(BK)
        row, column = at[:, None], at[None, :]
        a_tile = plt.load(a.at[i, column], mask=(i < m) & (column < k), other=0.0)
        b_tile = plt.load(b.at[row, j], mask=(row < k) & (j < n), other=0.0)
        return acc + plt.dot(a_tile, b_tile, precision=PRECISION)

    acc = jax.lax.fori_loop(0, pl.cdiv(k, BK), step, jnp.zeros((BM, BN), jnp.float32))
    plt.store(c.at[i, j], acc.astype(c.dtype), mask=(i < m) & (j < n))


def matmul(a, b, interpret=False):
    """Return a (M, K) · b (K, N) as (M, N), of a's dtype."""
    (m, k), n = a.shape, b.shape[1]
    return pl.pallas_call(
        functools.partial(pallas_tile, m=m, n=n, k=k),
        grid=(pl.cdiv(m, BM), pl.cdiv(n, BN)),
        out_shape=jax.ShapeDtypeStruct((m, n), a.dtype),
        compiler_params=plt.CompilerParams(num_warps=WARPS, num_stages=STAGES),
        interpret=interpret,
    )(a, b)
