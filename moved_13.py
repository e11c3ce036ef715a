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
# # Evidence for chapter 13: descriptors
#
# Chapter 13 replaces addresses by descriptors, and lets programs stay for several tiles of C. Here is what would have interrupted it: whether descriptors alone pay, how long the copy into padded rows takes, and what each ingredient of a persistent program is worth by itself.

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

import torch

from tiled_matmul.ladder import triton_descriptors, triton_persistent
from tiled_matmul.page import (
    Problem,
    claim,
    claims_table,
    compare,
    device,
    launched,
    made_describable,
    measure,
    results,
    say,
    table,
    tile_codes,
    time_interleaved,
)

# %% tags=["hide-input"]
hopper = machine.gpu and (9, 0) <= torch.cuda.get_device_capability() < (12, 0)
big = {"block": (128, 256, 64), "num_warps": 8}

# %% [markdown]
# ## Do descriptors alone pay?
#
# At 8192 × 8192 × 8192, the tensor cores are the limit with pointers already. Descriptors save registers and instructions, but the rate hardly changes. Compare chapter 11's kernel with the same kernel with descriptors, in this run and in the book's records:

# %% tags=["hide-input", "nbval-ignore-output"]
pair, gains = ("triton_swizzled", "triton_descriptors"), {}
if machine.gpu:
    now = {r.rung: r.time_ms for r in measure(*pair, n=8192)}
    if set(pair) <= set(now):
        gains["now"] = now[pair[0]] / now[pair[1]]
for dtype in ("float16", "bfloat16"):
    at = [r for r in results.reference() if (r.m, r.n, r.k, r.dtype) == (8192,) * 3 + (dtype,)]
    ms = {r.rung: r.time_ms for r in at}
    if set(pair) <= set(ms):
        gains[f"book's record in {dtype}"] = ms[pair[0]] / ms[pair[1]]

# %% tags=["hide-input", "nbval-ignore-output"]
claim(
    "Descriptors alone make the kernel of chapter 11 faster at 8192 in every run",
    source="chapter 13",
    holds=min(gains.values()) > 1.003 if gains else None,
    evidence=", ".join(f"{gain:.3f} times as fast ({which})" for which, gain in gains.items()),
)

# %% [markdown]
# What follows: do not expect a faster kernel from descriptors alone. One run differs from the next by as much as there is to gain.
#
# ## What does the copy into padded rows cost?
#
# A matrix whose rows do not begin at multiples of 16 bytes is copied by the launcher, with PyTorch's `copy_`. The copy reads the matrix once and writes it once. Compare its time with the time that memory needs for so many bytes, at the bandwidth of the data sheet:

# %% tags=["hide-input", "nbval-ignore-output"]
bandwidth = device.lookup("NVIDIA H200").bandwidth_gbps
odd, calls = {"4096×4095": (4096, 4096, 4095), "4096×4001": (4096, 4001, 4096)}, {}
for name, sizes in odd.items() if hopper else ():
    a, b = Problem(*sizes, "float16").inputs(0, device="cuda")
    calls[name] = partial(made_describable, a if sizes[2] == 4095 else b)
took = time_interleaved(calls, device="gpu", budget_s=0.6, graphs=True) if calls else {}
rows, slow = [], []
for name, timing in took.items():
    least_ms = 4 * min(odd[name][1:]) * 4096 / bandwidth / 1e6
    slow.append(timing.median_ms / least_ms)
    rows.append({"copy": name, "time (µs)": 1e3 * timing.median_ms, "memory (µs)": 1e3 * least_ms})
table(rows) if rows else say("On an H100 or H200, a table of times is shown here.")

# %% tags=["hide-input", "nbval-ignore-output"]
claim(
    "The copy into padded rows takes less than twice as long as memory needs for its bytes",
    source="chapter 13",
    holds=max(slow) < 2 if slow else None,
    evidence=", ".join(f"{name}: {x:.2f} times as long" for name, x in zip(odd, slow, strict=True))
    if slow
    else "there is no clock here",
)

# %% [markdown]
# So the copy is slower than it has to be. We did not look at the code of PyTorch's kernel, and do not know why. A kernel of one's own for this copy would shorten the products of chapter 13 with odd rows.
#
# ## What is each ingredient of a persistent program worth?
#
# The rung `triton_persistent` differs from one program for each tile in three ways. The programs stay. One loop covers tiles and steps along K (`flatten`). C is stored in two halves, which makes room for a fourth buffer. First the room:

# %% tags=["hide-input", "nbval-ignore-output"]
square = torch.empty((4096, 4096), dtype=torch.float16, device=machine.device)
jobs = {}
for halves in (False, True):
    options = big | {"num_stages": 4, "halves": halves}
    [one] = launched(triton_persistent.matmul, square, square, **options)
    jobs[halves] = (*one, (9, 0))
whole_code, halves_code = tile_codes(jobs).values()
say(
    f"Four stages take {whole_code.shared_bytes:,} bytes with C whole and "
    f"{halves_code.shared_bytes:,} with C in halves. A program can have "
    f"{device.shared_limit((9, 0)):,}."
)

# %% [markdown]
# Then the time, at a shape where each program has about two tiles with 16 steps each:

# %% tags=["hide-input", "nbval-ignore-output"]
stays = partial(triton_persistent.matmul, **big)
variants = {"cuBLAS": torch.matmul, "as it is": stays, "two loops": partial(stays, flatten=False)}
variants |= {
    "C whole": partial(stays, halves=False),
    "a fourth stage": partial(stays, num_stages=4),
}
variants["one program for each tile"] = partial(triton_descriptors.matmul, **big)
options = {"inputs": 1, "budget_s": 0.7, "launches": 16, "graphs": True, "dtype": "float16"}
ms = compare(variants, shape=(8192, 1024, 1024), **options).ms if hopper else {}
rows = [{"kernel": x, "time (µs)": 1e3 * t, "of cuBLAS": ms["cuBLAS"] / t} for x, t in ms.items()]
table(rows) if rows else say("On an H100 or H200, a table of times is shown here.")

# %% tags=["hide-input", "nbval-ignore-output"]
parts = {"One loop for tiles and steps": ("two loops", "as it is")}
parts |= {"C in halves": ("C whole", "as it is"), "A fourth stage": ("as it is", "a fourth stage")}
verdicts = []
for said, (without, with_it) in parts.items():
    gain = ms[without] / ms[with_it] if ms else 0
    evidence = f"{gain:.3f} times as fast as without (8192×1024×1024)"
    verdicts.append(
        claim(
            f"{said} makes persistent programs faster by more than 1%",
            source="chapter 13",
            holds=gain > 1.01 if gain else None,
            evidence=evidence if gain else "there is no clock here",
        )
    )
claims_table(verdicts)

# %% [markdown]
# What follows: of the three, the single loop is the one to write first. Halves and a fourth stage made no difference above the noise on the book's H200.
