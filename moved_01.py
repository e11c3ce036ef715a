# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#       format_version: '1.3'
#       jupytext_version: 1.19.6
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Evidence for chapter 1: sums, tolerances and factors
#
# Chapter 1 checks products with a bound that was derived, and compares Python, compiled loops and BLAS. Here is the evidence that would have interrupted it: why `numpy.allclose` is not that check, how much of the bound real sums use, and how the factors between the three depend on the size and on the number of cores.

# %% tags=["remove-input", "nbval-ignore-output"]
# Set-up, the same in every notebook. On Colab it fetches the course first.
import os
import sys
from importlib.util import find_spec
from subprocess import check_call
from tempfile import mkdtemp

REPOSITORY = ""
if not find_spec("tiled_matmul"):
    if "COLAB_RELEASE_TAG" not in os.environ:
        raise ModuleNotFoundError("no tiled_matmul: run `make lab`, or `pip install -e .`")
    if not os.path.exists("tiled-matmul"):
        url = os.environ.get("TILED_MATMUL_REPOSITORY", REPOSITORY)
        if not url:
            fix = "write it into REPOSITORY above, as https://github.com/OWNER/NAME"
            raise ValueError(f"this notebook does not hold the course's address: {fix}")
        check_call(["git", "clone", "-q", "--depth=1", url, part := mkdtemp(dir=".")])
        os.rename(part, "tiled-matmul")
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps"]
    check_call([*pip, "-e", "tiled-matmul", "nbval", "coverage"])
    sys.path.insert(0, os.path.abspath("tiled-matmul/src"))
from tiled_matmul.page import setup

machine = setup()

# %% tags=["hide-input"]
# ruff: noqa: E402, E501
from functools import reduce
from operator import add

import numpy as np
from numba import njit

from tiled_matmul.ladder.loops_python import loops_1
from tiled_matmul.page import Problem, claim, gamma, ladder_table, measure, say, table
from tiled_matmul.plots import loops as figures
from tiled_matmul.plots import rates

problem = Problem.square(64)
a, b = problem.inputs()
c = np.empty((64, 64), np.float32)
loops_1(a, b, c)
exact = a.astype(np.float64) @ b

# %% [markdown]
# ## Is `numpy.allclose` a check?
#
# `numpy.allclose` allows each element an error of 10⁻⁵ of that element, and 10⁻⁸ more. Rounding errors, however, are in proportion to the *products* that were added. Where positive and negative products cancel, the sum is small and the errors are not, so the default rejects a right product. A larger tolerance avoids that, and accepts a wrong one: with `rtol=1e-2`, a kernel passes that leaves 16 of 4096 products out of every sum.

# %% tags=["hide-input"]
# NBVAL_CHECK_OUTPUT
rng = np.random.default_rng(0)
long_a, long_b = rng.random((32, 4096), np.float32), rng.random((4096, 32), np.float32)
forgetful = long_a[:, :-16] @ long_b[:-16]
passes = np.allclose(forgetful, long_a @ long_b, rtol=1e-2)
rejected = int((~np.isclose(c, exact)).sum())
table(
    [
        {"product": "right, 64×64×64", "tolerance": "default", "accepted": rejected == 0},
        {"product": "16 products missing, 32×32×4096", "tolerance": "1%", "accepted": passes},
    ]
)

# %% tags=["hide-input"]
claim(
    "numpy.allclose tells a right matrix product from a wrong one.",
    source="this course; the check of many a tutorial",
    holds=rejected == 0 and not passes,
    evidence="its default refuses the right product of Loops 1 at 64×64×64; loosened to one "
    "percent, it accepts a product at 32×32×4096 whose sums all lack 16 terms",
)

# %% [markdown]
# ## How much does the order of a sum change?
#
# Here are 4096 products of random numbers, added in several orders, and by BLAS:


# %% tags=["hide-input", "nbval-ignore-output"]
def forward(products):
    return reduce(add, products)


def pairwise(products):
    half = len(products) // 2
    return products[0] if half == 0 else pairwise(products[:half]) + pairwise(products[half:])


row, column = Problem(1, 1, 4096).inputs(seed=1)
products = row[0] * column[:, 0]
sums = {
    "first to last": forward(products),
    "last to first": forward(products[::-1]),
    "in pairs, then pairs of pairs": pairwise(products),
    "BLAS": (row @ column)[0, 0],
    "float64": row[0].astype(np.float64) @ column[:, 0],
}
table([{"order": order, "sum": f"{total:.9f}"} for order, total in sums.items()])

# %% [markdown]
# Here the orders differ in the last digits only. That is usual, but not guaranteed. The sum of 1 and many small numbers, from chapter 1, loses more:

# %% tags=["hide-input"]
u = 2.0**-24
tiny = np.full(2**20, u, np.float32)
tiny[0] = 1
off = (forward(tiny[::-1]) - forward(tiny)) / forward(tiny[::-1])
claim(
    "The order in which a sum is taken changes only its last digits.",
    source="often said",
    holds=bool(off < 1e-6),
    evidence=f"one order loses {off:.1%} of the sum of 1 and 2²⁰ − 1 numbers of 2⁻²⁴",
)

# %% [markdown]
# The bound $\gamma_K (|A|\,|B|)$ allows for that sum. How much of it do other sums use? The inputs below are positive, so no terms cancel.


# %% mystnb={"figure": {"caption": "The largest error of 64 sums, by their length and by the order of adding. The diamonds are the sum of 1 and many u = 2\u207b\u00b2\u2074.", "name": "fig-m01-rounding"}} tags=["hide-input"]
def error(order, a, b):
    """Return the worst error of the sums down the columns, in units of u times the sum."""
    right = (a.astype(np.float64) * b).sum(axis=0)
    return (abs(order(a * b) - right) / (u * right)).max()


def random_error(order, k):
    return error(order, *np.random.default_rng(k).random((2, k, 64), np.float32))


lengths = [4**e for e in range(1, 9)]
errors = {
    "1 + u + u + …": [error(forward, tiny[:k, None], np.float32(1)) for k in lengths],
    "random, first to last": [random_error(forward, k) for k in lengths],
    "random, last to first": [random_error(lambda p: forward(p[::-1]), k) for k in lengths],
    "random, pairwise": [random_error(pairwise, k) for k in lengths],
}
bound = [gamma(k, "float32") / u for k in lengths]
assert all((np.array(series) <= bound).all() for series in errors.values())
figures.rounding_errors(lengths, errors, bound)

# %% [markdown]
# The bound cannot be lowered, because one sum uses nearly all of it. Random sums use little, because their errors partly cancel. Pairwise sums have the smallest errors, because each product passes through $\log_2 K$ additions and not through K.
#
# The bound grows with K. Sixteen missing products are about 16/K of a sum, and the bound allows $K \cdot 2^{-24}$ of it. The two meet at K = 16,384. For longer sums, only whole numbers show such a fault.
#
# ## Does compiling change the bits?

# %% tags=["hide-input"]
c_compiled = np.empty_like(c)
njit(loops_1)(a, b, c_compiled)
claim(
    "Compiled and interpreted loops give the same product, bit for bit.",
    source="this course",
    holds=c_compiled.tobytes() == c.tobytes(),
    evidence=f"{(c_compiled.view(np.int32) == c.view(np.int32)).sum()} of {c.size} elements "
    "are equal in all their bits",
)

# %% [markdown]
# The same additions in the same order have the same roundings, and without permission the compiler must keep the order.
#
# ## How do the factors depend on the size?

# %% mystnb={"figure": {"caption": "Rates of square products on one core of this machine's CPU.", "name": "fig-m01-by-size"}} tags=["hide-input", "nbval-ignore-output"]
at_64 = measure("loops_python", "njit_ijk", n=64, threads=1)
library, python, compiled = at_64
records = [python, compiled, library]
for n in (32, 128, 256, 512):
    rungs = ["loops_python", "njit_ijk"] if n <= 64 else ["njit_ijk"]
    records += measure(*rungs, n=n, threads=1, budget_s=0.2, round_s=8)
large_library, large = records[-2:]
up, down = large_library.tflops / library.tflops, compiled.tflops / large.tflops
rates.rates_by_size(
    records, f"From 64³ to 512³: BLAS at ×{up:.2g} the rate, the loops at ×{1 / down:.2g}"
)

# %% tags=["hide-input", "nbval-ignore-output"]
ratio = python.time_ms / library.time_ms
claim(
    "Loops in plain Python are at least a thousand times slower than BLAS.",
    source="this course, its first paragraph",
    holds=ratio >= 1000,
    evidence=f"{ratio:,.0f} times at 64×64×64 float32 on {library.gpu}",
)

# %% [markdown]
# ## What are the other cores worth?
#
# BLAS uses all cores if it may. The compiled loops use one:

# %% tags=["hide-input", "nbval-ignore-output"]
shared_library, shared = measure("njit_ijk", n=512, budget_s=0.2, round_s=8)
one_core, all_cores = (1 / r.ratio for r in (large, shared))
worth = (
    f"so the other cores are worth a factor of {all_cores / one_core:.1f}"
    if all_cores > one_core
    else "so the other cores do not help: other programs may keep them busy"
)
say(
    f"At 512³ BLAS is {one_core:,.0f} times faster than the compiled loops with one core, and "
    f"{all_cores:,.0f} times with all, {worth}. A factor of **{one_core:,.0f}** is lost inside "
    "one core."
)

# %% tags=["hide-input", "nbval-ignore-output"]
ladder_table([large, large_library, shared, shared_library])

# %% [markdown]
# ## Sources
#
# The bound, and the errors of pairwise sums: {cite:p}`higham2002`, chapters 3 and 4. Rounding in `float32`: {cite:p}`goldberg1991`.
