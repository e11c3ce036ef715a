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
# # Evidence for chapter 2: what misses and strides explain
#
# Chapter 2 predicts the misses of the six loop orders and finds that misses and vector instructions explain most of their times. Here two short rules are tested against the same measurements: “count the misses” and “use stride 1”.

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
from functools import partial

import numpy as np
from numba import njit

from tiled_matmul.ladder import ORDERS
from tiled_matmul.ladder.loop_orders import ikj
from tiled_matmul.models.cache import LEVEL_1, level_1, loop_misses, ranked_right
from tiled_matmul.page import Problem, claim, measure, say, table, time_interleaved


def ns_per_iteration(n):
    records = measure(*[f"njit_{order}" for order in ORDERS], n=n, threads=1)
    return {r.rung[5:]: r.time_ms * 1e6 / n**3 for r in records[1:]}


def misses_per_iteration(n, cache):
    return {order: loop_misses(order, n, n, n, cache).total / n**3 for order in ORDERS}


# %% [markdown]
# ## Is it enough to count misses?
#
# The model counts the misses of each order in this machine's level-1 cache. At N = 256 the orders differ in their misses. At N = 250 they hardly do.

# %% tags=["hide-input", "nbval-ignore-output"]
here = level_1() or LEVEL_1
times = {n: ns_per_iteration(n) for n in (250, 256)}
misses = {n: misses_per_iteration(n, here) for n in (250, 256)}
right, decided = ranked_right(misses[256], times[256])
alike = [o for o in ORDERS if misses[250][o] <= 1.1 * min(misses[250].values())]
apart = max(times[250][o] for o in alike) / min(times[250][o] for o in alike)
claim(
    "Count the cache misses, and you know which loop order is fastest.",
    source="a common way to explain loop orders",
    holds=right == decided and apart < 1.5,
    evidence=f"N = 256: {right} of {decided} pairs ranked rightly; N = 250: {len(alike)} orders "
    f"with the same misses within 10%, and times up to a factor of {apart:.1f} apart",
)

# %% [markdown]
# ## What does a miss cost?
#
# Divide the additional time at 256 by the additional misses, and you have the average cost of a miss. It is not one number. A core that knows the next address already starts its load while it still waits for the first, so the average is shorter than the way to the next cache and back.

# %% tags=["hide-input", "nbval-ignore-output"]
rows = []
for order in ORDERS:
    extra = misses[256][order] - misses[250][order]
    longer = times[256][order] - times[250][order]
    row = {"order": order, "ns at 250": times[250][order], "ns at 256": times[256][order]}
    row |= {"more misses per iteration": f"{abs(extra):.2f}"}
    rows.append(row | {"ns for each": f"{longer / extra:.2g}" if extra > 0.1 else "–"})
table(rows)

# %% [markdown]
# ## Is it enough that the innermost loop has stride 1?
#
# Give `ijk` the matrix B transposed. Its innermost loop then has the strides 1, 1 and 0, against 0, 1 and 1 in `ikj`, and about the same misses: it walks through all of Bᵀ for each row of A, as `ikj` walks through all of B. But its additions form a chain.


# %%
@njit
def in_order(a, bt, c):
    for i in range(c.shape[0]):
        for j in range(c.shape[1]):
            acc = a.dtype.type(0)
            for k in range(a.shape[1]):
                acc += a[i, k] * bt[j, k]
            c[i, j] = acc


# %% tags=["hide-input", "nbval-ignore-output"]
x, y = Problem.square(250).inputs()
z = np.empty_like(x)
calls = {"ikj": partial(ikj, x, y, z), "in_order": partial(in_order, x, y.T.copy(), z)}
timings = time_interleaved(calls, device="cpu", budget_s=0.5)
stride_1 = timings["in_order"].median_ms / timings["ikj"].median_ms
claim(
    "For speed, it is enough that the innermost loop moves with stride 1.",
    source="a common short form of that advice",
    holds=stride_1 < 1.2,
    evidence="at N = 250, with about the same misses, ijk on B transposed, with the strides 1, 1 "
    f"and 0, takes {stride_1:.1f} times as long as ikj with 0, 1 and 1",
)

# %% tags=["hide-input", "nbval-ignore-output"]
verdict = (
    "So stride 1 is not enough: vector instructions also need independent sums."
    if stride_1 >= 1.2
    else "On this machine the chain costs nothing."
)
say(f"`ijk` on B transposed takes **{stride_1:.1f} times** as long as `ikj`. {verdict}")

# %% [markdown]
# ## Sources
#
# Loop orders and unit stride: {cite:p}`golub2013`. Caches and the overlap of misses: {cite:p}`hennessy2019`.
