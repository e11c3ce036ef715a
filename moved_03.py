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
# # Evidence for chapter 3: tiling
#
# Two statements that are common in courses on tiling, and what we counted and measured. Neither is quoted from one source. They left chapter 3, which keeps the table of write-backs and the measured rates.

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

from tiled_matmul.ladder import loops_tiled
from tiled_matmul.ladder.cpu_packed import aligned_zeros
from tiled_matmul.ladder.loop_orders import ikj
from tiled_matmul.models.cache import LEVEL_1, tiled_misses
from tiled_matmul.page import Problem, claim, say, table, time_interleaved

# %% [markdown]
# ## Three tiles that fit
#
# The usual rule is to take the largest T for which three tiles fit in the cache, one of each matrix. In 48 KiB that is T = 64. The model of [chapter 2](02_loop_orders.ipynb) counts the words that are loaded for each multiplication at N = 240. A tile of C that leaves the cache is also written back, so the last column counts C twice:

# %% tags=["hide-input"]
# NBVAL_CHECK_OUTPUT
FLOATS = 16  # in a line of 64 bytes
N = 240
loaded, both, rows = {}, {}, []
for T in (16, 32, 48, 64, 80, 96, 128):
    misses = tiled_misses(T, N, N, N, LEVEL_1)
    c_words = FLOATS * misses.c / N**3
    loaded[T] = FLOATS * misses.total / N**3
    both[T] = loaded[T] + c_words
    row = {"T": T, "words loaded": loaded[T], "C is loaded … times": N * c_words}
    rows.append(row | {"loaded and written back": both[T]})
table(rows)

# %% tags=["hide-input"]
# NBVAL_CHECK_OUTPUT
best, best_both = (min(count, key=count.get) for count in (loaded, both))
claim(
    "The best tile is the largest of which three fit in the cache.",
    source="the rule of thumb of many courses",
    holds=64 in (best, best_both),
    evidence="words loaded in the model's 48 KiB, and with write-backs: "
    + "; ".join(f"{loaded[T]:.4f} and {both[T]:.4f} at T = {T}" for T in (64, 48, best))
    + ". Of 64, three fit and fill it",
)

# %% [markdown]
# Three tiles of 64 fill the cache to the last byte, and C's tile does not stay. Of 48, all three stay. With the write-backs counted, 48 is as good as 80 and 96. So the best T depends on what is counted, and no count is a time.
#
# ## Are tiles faster?
#
# Loops 4 is timed against `ikj` on one thread, in float32, with six edges T. At N = 1000 a matrix has 4 MB. At N = 1024, rows are a power of two, so the lines of a tile belong to a few sets of the cache.

# %% tags=["hide-input", "nbval-ignore-output"]
EDGES = (16, 32, 64, 128, 256, 512)
runs = {}
for n in (1000, 1024):
    a, b, c = (aligned_zeros(n * n, np.float32).reshape(n, n) for _ in range(3))
    a[:], b[:] = Problem.square(n).inputs()
    runs[n, "ikj"] = partial(ikj, a, b, c)
    for T in EDGES:
        runs[n, T] = partial(loops_tiled.matmul, a, b, c, tile=T)
times = time_interleaved(runs, device="cpu", threads=1, rounds=3)
gains = {
    n: {T: times[n, "ikj"].median_ms / times[n, T].median_ms for T in EDGES} for n in (1000, 1024)
}
rows = [{"T": T} | {f"rate / rate of ikj, N = {n}": gains[n][T] for n in gains} for T in EDGES]
table(rows)

# %% tags=["hide-input", "nbval-ignore-output"]
tops = {n: max(line, key=line.get) for n, line in gains.items()}
best = times[1000, tops[1000]].median_ms
tied = [T for T in EDGES if min(times[1000, T].samples_ms) <= best]
if len(tied) > 1:
    edges = ", ".join(map(str, tied))
    say(f"At N = 1000 the times of T = {edges} overlap, so treat these as equally fast.")

# %% tags=["hide-input", "nbval-ignore-output"]
claim(
    "Cutting the loops into tiles makes them faster, if the tile is right.",
    source="courses on loops; the condition is ours",
    holds=all(gains[n][top] > 1.05 for n, top in tops.items()),
    evidence="of ikj's rate on one thread, "
    + "; ".join(
        f"at {n}³ {gains[n][top]:.2f} times with T = {top}, {gains[n][16]:.2f} with T = 16"
        for n, top in tops.items()
    ),
)
