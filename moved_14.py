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
# # Evidence for chapter 14: shapes that do not fit
#
# Chapter 14 counts tiles and waves, cuts K, and picks a kernel by a model. Here is the evidence that would have interrupted it: what idle multiprocessors cost, what the order of programs changes in a single wave, what an early second kernel saves, how far the model can be trusted, and what a launch costs besides its iterations.

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
import re
from functools import partial
from math import prod
from statistics import geometric_mean, median

import torch
import triton

from tiled_matmul.ladder import triton_best, triton_split_k, triton_two_widths
from tiled_matmul.models.roofline import step_clocks
from tiled_matmul.models.waves import Waves
from tiled_matmul.page import (
    Problem,
    claim,
    claims_table,
    compare,
    counters,
    device,
    results,
    say,
    table,
    time_interleaved,
)

# %% tags=["hide-input"]
H200 = device.lookup("NVIDIA H200")
hopper = machine.gpu and (9, 0) <= torch.cuda.get_device_capability() < (12, 0)
LONG, FLAT = (512, 512, 16384), (3072, 768, 4096)
stored = results.reference()
book = {}  # the book's float16 records: {(m, n, k): {rung: record}}
for r in stored:
    if r.dtype == "float16":
        book.setdefault((r.m, r.n, r.k), {})[r.rung] = r
profiles = {(p.m, p.n, p.k): p for p in counters.taken("float16")}


def cut(m, n, tile_m=128, tile_n=256, splits=1):
    """Return the waves of a C (m, n) in such tiles, on an H200."""
    tiles = -(-m // tile_m) * -(-n // tile_n)
    return Waves(tiles * splits, H200.sms)


def timed(matmuls, m, n, k, budget_s=0.7):
    """Return the milliseconds of each product of float16 matrices, in turn with cuBLAS."""
    options = {"inputs": 1, "budget_s": budget_s, "launches": 16, "graphs": True}
    pairs = {"cuBLAS": torch.matmul} | matmuls
    return compare(pairs, shape=(m, n, k), dtype="float16", **options).ms if hopper else {}


# %% [markdown]
# ## What does an idle multiprocessor cost?
#
# The model of waves says: if a multiprocessor is idle for a share of the time, that share of the rate is lost. Compare two products with the same tiles and the same K. A C of 4096 × 4096 keeps the multiprocessors of an H200 busy for 97% of the time, one of 3072 × 768 for 55%.

# %% tags=["hide-input"]
told, rates = [], []
for m, n, k in ((4096, 4096, 4096), FLAT):
    record, used = book[m, n, k]["triton_descriptors"], cut(m, n).fill
    rates.append(record.tflops / used)
    told.append(f"{m}×{n}×{k}: {used:.0%} busy, {record.tflops:.0f} TFLOP/s")
more = rates[1] / rates[0]
claim(
    "An idle multiprocessor costs its share of the rate, to 5%",
    source="chapter 14",
    holds=abs(more - 1) < 0.05,
    evidence=f"{'; '.join(told)}: one with a tile does {more:.2f} times as much where 60 are idle "
    "(book's records, triton_descriptors)",
)

# %% [markdown]
# So most of the loss is there, but not all of it: the multiprocessors with a tile do more than they do on a busy GPU. A higher clock is a possible reason, since fewer tensor cores draw less power. The clock of these two launches was not measured side by side.
#
# ## What the L2 reads, and what arrives
#
# In split-K at 512 × 512 × 16,384, each of 128 programs makes 32 iterations, and loads a tile of A (64 × 128) and one of B (128 × 128) in each. That is 128 · 32 · (64·128 + 128·128) · 2 bytes, 201 MB, six times A and B together. Neighbouring programs have the same blocks of K, so many of them load the same tile at the same time. If their loads are merged on the way, the L2 reads less than what arrives at the multiprocessors.


# %% tags=["hide-input"]
def delivered(rung, shape):
    """Return the bytes that the L2 reads, and those that arrive, in a profiled launch."""
    seen = profiles[shape][rung].longest.values
    return 32 * seen["l2_tex_read_sectors"], seen["arrived_bytes"]


read, arrived = delivered("triton_split_k", LONG)
expected = 128 * 32 * (64 * 128 + 128 * 128) * 2
claim(
    "The L2 reads less than what arrives: one read serves several multiprocessors",
    source="chapter 14",
    holds=abs(arrived / expected - 1) < 0.02 and read < 0.8 * arrived,
    evidence=f"{arrived / 1e6:.0f} MB arrive, the L2 reads {read / 1e6:.0f} MB (profiler)",
)

# %% [markdown]
# The profiler has a metric for the unit that does this. It calls the unit LRC, places it between the L2 and the multiprocessors, and counts its average *coalescing* rate. That is chapter 4's word, one level further out. Which programs run on which multiprocessors, no counter says. That neighbouring numbers run close together is an inference from the times.
#
# ## The order of programs in a single wave
#
# At 3072 × 768 × 4096, tiles of 288 × 64 make 132 programs, which all run at once. A and B are 31 MB, and fit in the L2 of 50 MB. Chapter 11's groups decide only which programs are neighbours:

# %% tags=["hide-input", "nbval-ignore-output"]
tall = {"block": (64, (256, 32), 64), "num_warps": 4, "num_stages": 4, "down": True}
groups = {}
for size in (1, 2, 4, 16):
    groups[f"groups of {size}"] = partial(triton_two_widths.matmul, **tall, group_m=size)
group_ms = timed(groups, *FLAT)
rows = []
for name, ms in group_ms.items():
    rows.append({"kernel": name, "time (µs)": 1e3 * ms, "of cuBLAS": group_ms["cuBLAS"] / ms})
table(rows) if rows else say("On an H100 or H200, a table of times is shown here.")

# %% tags=["hide-input", "nbval-ignore-output"]
judged, evidence = None, "there is no clock for these tiles here"
if group_ms:
    gain = group_ms["groups of 1"] / group_ms["groups of 4"]
    judged, evidence = gain > 1.02, f"groups of 4 are {gain:.2f} times as fast as groups of 1"
read, arrived = delivered("triton_best", FLAT)
evidence += f"; in groups of 16 {arrived / 1e6:.0f} MB arrive, and the L2 reads {read / 1e6:.0f} MB"
said = "The order matters in a single wave of 132 programs, too (3072×768×4096)"
claim(said, source="chapter 14", holds=judged, evidence=evidence)

# %% [markdown]
# ## A second kernel that starts early
#
# Split-K's second kernel has to wait for the parts. But only its first load must wait, not its start. With programmatic dependent launch {cite:p}`cudaguide`, the first kernel allows the second one to start (`gdc_launch_dependents`), and the second one waits before it loads (`gdc_wait`). At most this can save what it takes to start a kernel behind another one. A kernel that does nothing shows how much that is:


# %% tags=["hide-input", "nbval-ignore-output"]
@triton.jit
def nothing_kernel(x):
    pass


def nothing(a, b):
    """Launch a kernel that does nothing."""
    nothing_kernel[(1,)](a)


start_us = 0.0
if hopper:
    inputs = [Problem.square(512, "float16").inputs(0, device="cuda")]
    options = {"launches": 32, "graphs": True, "inputs": inputs, "budget_s": 0.4}
    took = time_interleaved({"nothing": nothing}, device="gpu", **options)
    start_us = 1e3 * took["nothing"].median_ms
say(f"It takes {start_us:.2f} µs, replayed." if start_us else "There is no clock here.")

# %% [markdown]
# Two of the book's shapes use split-K: 512 × 512 × 16,384, and 16 × 4096 × 4096, which takes about half as long. So the same saving would be a larger share of the second one's time.

# %% tags=["hide-input", "nbval-ignore-output"]
four = {"num_warps": 4, "num_stages": 4, "splits": 4}
split = {
    LONG: {"block": (64, 128, 128), **four},
    (16, 4096, 4096): {"block": (16, 128, 128), **four},
}
early_ms, rows = {}, []
for shape, options in split.items() if hopper else ():
    cut_k = partial(triton_split_k.matmul, **options)
    pair = {"after": partial(cut_k, overlap=False), "early": partial(cut_k, overlap=True)}
    name = "×".join(map(str, shape))
    early_ms[name] = took = timed(pair, *shape)
    row = {"product": name}
    row |= {f"second kernel {when} (µs)": 1e3 * took[when] for when in pair}
    rows.append(row | {"early, of cuBLAS": took["cuBLAS"] / took["early"]})
table(rows) if rows else say("On an H100 or H200, a table of times is shown here.")

# %% tags=["hide-input", "nbval-ignore-output"]
told, holds = "there is no clock here", (None, None)
if early_ms:
    saved = [1e3 * (took["after"] - took["early"]) for took in early_ms.values()]
    shares = [1e-3 * s / took["after"] for s, took in zip(saved, early_ms.values(), strict=True)]
    holds = min(shares) > 0.01, abs(saved[0] - saved[1]) < 0.25 * max(saved)
    three = zip(saved, shares, early_ms, strict=True)
    told = ", ".join(f"{one:.2f} µs, {share:.1%} ({name})" for one, share, name in three)
    told += f"; a kernel that does nothing, replayed: {start_us:.2f} µs"
said = "A second kernel that starts early saves more than 1%", "It saves both products the same"
both = zip(said, holds, strict=True)
claims_table([claim(s, source="chapter 14", holds=h, evidence=told) for s, h in both])

# %% [markdown]
# In the runs for this book, the saving changed from run to run, between nothing and what a kernel that does nothing takes. So `triton_split_k` uses it where it can, but no figure of this book depends on it. It is safe only because of the wait: without `gdc_wait`, the second kernel may add parts that are not complete.
#
# ## Does the model predict the tall tile?
#
# Chapter 14 picks tiles of 288 × 64 for 3072 × 768 × 4096, because the cycles of an iteration, times the number of waves, are fewest. The model expects the ratio of these products:

# %% tags=["hide-input"]
short, high = step_clocks(128, (256,), 64), step_clocks(64, (256, 32), 64)
before = cut(3072, 768).count * short.longer
after = cut(768, 3072, 64, 288).count * high.longer
plain, two = (book[FLAT][f"triton_{name}"].ratio for name in ("descriptors", "two_widths"))
found, expected = two / plain, before / after
claim(
    "Cycles times waves predict, to 5%, what tiles of 288 rows gain at 3072×768×4096",
    source="chapter 14",
    holds=abs(found / expected - 1) < 0.05,
    evidence=f"{found:.2f} times as fast as tiles of 128 × 256; the model says {expected:.2f} "
    f"({plain:.2f} and {two:.2f} of cuBLAS, book's records)",
)

# %% tags=["hide-input"]
seen = profiles[FLAT]["triton_best"]
cycles = seen["time_ns"] * seen["clock_hz"] / 1e9
say(
    f"Why not better? 64 iterations of {high.longer:.0f} cycles are {64 * high.longer:,.0f}. The "
    f"profiler counts {cycles:,.0f} cycles for the whole launch, so hardly any would be left for "
    f"its start and its end. And by the model tensor cores are busy for at most "
    f"{high.tensor / high.longer:.0%} of the time, while the profiler says "
    f"{seen['tensor_cycles_pct']:.0f}%. So the model overstates what shared memory costs. It "
    "picks the right tile here, with a wrong number of cycles."
)

# %% [markdown]
# ## What does a launch cost besides its iterations?
#
# Take the profiled time of a product, and subtract the arithmetic at the clock that the profiler saw, the parts of tiles outside of C, and idle multiprocessors. What remains are the launch, starts and ends of programs, and waiting. Two products that differ only in K show whether this rest grows with K:


# %% tags=["hide-input"]
def rest_cycles(shape):
    """Return the cycles of a profiled launch of triton_best that the count does not explain."""
    m, n, k = shape
    seen, options = profiles[shape]["triton_best"], triton_best.pick(*shape, H200.sms).options
    high, wide, _ = options["block"]
    waves = cut(m, n, high, wide, options.get("splits", 1))
    useful = 2 * m * n * k / 4096 / H200.sms
    edges = cut(m, n, high, wide).tiles * high * wide / (m * n)
    return seen["time_ns"] * seen["clock_hz"] / 1e9 - useful * edges / waves.fill


short, long = (rest_cycles((2048, 2048, k)) for k in (2048, 8192))
claim(
    "The rest costs as many cycles with 32 iterations along K as with 128, to 10%",
    source="chapter 14",
    holds=abs(short / long - 1) < 0.1,
    evidence=f"2048×2048: {short:,.0f} cycles with K = 2048, {long:,.0f} with K = 8192 (profiler)",
)

# %% [markdown]
# So it is mostly a price of each launch, and a longer K makes it a smaller share. The same profiles hold cuBLAS's launches:

# %% tags=["hide-input"]
rows = []
for shape, p in profiles.items():
    if "cublas" not in p or "triton_best" not in p or "clock_hz" not in p["triton_best"]:
        continue
    theirs, ours = p["cublas"], p["triton_best"]
    tile = re.search(r"_(\d+x\d+)_", theirs.longest.name)
    row = {"product": "×".join(map(str, shape)), "cuBLAS's tile": tile[1] if tile else "–"}
    row |= {"its programs": prod(theirs.longest.grid), "ours": prod(ours.longest.grid)}
    clock = ours["clock_hz"] / theirs["clock_hz"]
    row |= {"cycles, ours to its": ours["time_ns"] / theirs["time_ns"] * clock}
    row |= {"clock, ours to its": clock}
    rows.append(row | {"tensor cores busy (%)": ours.values.get("tensor_cycles_pct", "–")})
table(rows)

# %% [markdown]
# cuBLAS's tile is what two numbers in the name of its kernel suggest. At 4000³ it covers 4000 × 4032, ours 4096 × 4096. Where the cycles agree to a percent and a record is still behind, the difference lies where the profiler does not look: between launches, or in the clock of many launches in a row.
#
# ## Which average?
#
# The ratios of the fourteen shapes are not symmetric: a few small products are far above 1. So a mean says more about these few than about the others.

# %% tags=["hide-input"]
rows = []
for dtype in ("float16", "bfloat16"):
    found = sorted(r.ratio for r in stored if r.rung == "triton_best" and r.dtype == dtype)
    row = {"ratios to cuBLAS": dtype, "shapes": len(found), "below 1": sum(r < 1 for r in found)}
    row |= {"lowest": found[0], "median": median(found), "highest": found[-1]}
    row["geometric mean"] = geometric_mean(found)
    rows.append(row | {"without the best two": geometric_mean(found[:-2])})
table(rows)

# %% [markdown]
# ## Rows that begin at multiples of 16 bytes, but not of 128
#
# A descriptor requires that each row begins at a multiple of 16 bytes. A line of the L2 has 128. Compare two products that hardly differ in size. The rows of the first begin at multiples of 16 bytes, those of the second at multiples of 128:

# %% tags=["hide-input", "nbval-ignore-output"]
sentence, pair = (
    "On an H100 or H200, a comparison is shown here.",
    ((5000, 3000, 7000), (5000, 3072, 7040)),
)
if hopper:
    odd, even = (timed({"picked": triton_best.matmul}, *shape)["picked"] for shape in pair)
    sentence = (
        f"5000×3072×7040 has {prod(pair[1]) / prod(pair[0]) - 1:.0%} more arithmetic than "
        f"5000×3000×7000, and takes {even / odd:.2f} times its time."
    )
say(sentence)

# %% [markdown]
# ## Sources
#
# Programmatic dependent launch and CUDA graphs: {cite:p}`cudaguide`. The H200: {cite:p}`h200datasheet`. What these sources claim, and whether it holds: [claims](../claims.md).
