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
# # Evidence for chapter 10: program order
#
# Chapter 10 deals the tiles of C out to programs in groups, so that programs that run together need few strips of A and B. Here is the evidence that would have interrupted it: what the source says about the kernel and what a trace of it shows, how far the model of the cache can be trusted, and what each ingredient of the kernel is worth by itself.

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
from collections import Counter
from functools import partial

import torch

from tiled_matmul.ladder import triton_block_pointers, triton_swizzled
from tiled_matmul.models.program_order import Setting, program_order, traffic
from tiled_matmul.page import (
    claim,
    claims_table,
    compare,
    counters,
    device,
    edited,
    launched,
    say,
    table,
    tile_codes,
    trace_tiles,
    whole_numbers,
)

PAGE = "Matmul (Triton), matmul_v1"
H200 = device.lookup("NVIDIA H200")
L2 = int(H200.l2_mb * 2**20)
kernel = triton_swizzled.triton_swizzled_kernel


# %% tags=["hide-input"]
def traced(kernel, group_m):
    """Return the trace of 75×45×30 in tiles of 16, and how many elements of C are wrong."""
    a, b = (x.cpu() for x in whole_numbers(75, 45, 30))
    c = torch.full((75, 45), float("nan"))
    sizes = (75, 45, 30, *a.stride(), *b.stride(), *c.stride(), 16, 16, 16)
    t = trace_tiles(kernel, (15,), a, b, c, *sizes, "ieee", group_m, True, True)
    return t, int((c != a @ b).sum())


# %% [markdown]
# ## What the source says about the kernel
#
# The kernel comes from a page that describes it in a list of sentences {cite:p}`tritonkernels`. Five of them say what each program does. The trace of a product of 75 × 45 × 30 in tiles of 16 × 16 × 16 can judge these.

# %% tags=["hide-input"]
# NBVAL_CHECK_OUTPUT
rows = []
for group_m in (1, 2, 3, 8):
    t, wrong = traced(kernel, group_m)
    stores = [(e.rows[0] // 16, e.cols[0] // 16) for e in t.select(op="store", array="c")]
    same = stores == [tuple(tile) for tile in program_order(5, 3, group_m).tolist()]
    row = {"GROUP_M": group_m, "wrong elements": wrong, "findings": len(t.findings)}
    rows.append(row | {"tiles in the order of the formula": "yes" if same else "no"})
table(rows)

# %% tags=["hide-input"]
t, wrong = traced(kernel, 8)
a_tiles, b_tiles = (t.select(program=4, op="load", array=name) for name in "ab")
dots, (first, last) = t.select(program=4, op="dot"), a_tiles
corners = [(each.rows[0], each.cols[0]) for each in (first, b_tiles[0])]
down, across = program_order(5, 3, 8)[4].tolist()
chunks = [each.cols for each in a_tiles]
page = {
    "Instead of a 2D grid, it uses a 1D grid and remaps pid into (pid_m, pid_n)": (
        t.grid[1:] == (1, 1) and same,
        f"a grid of {t.grid}; the tiles of {len(t.programs)} programs are those of the formula",
    ),
    "a_ptrs points to a [BLOCK_SIZE_M, BLOCK_SIZE_K] tile of A, b_ptrs to one of B": (
        corners == [(16 * down, 0), (0, 16 * across)],
        f"program 4 computes tile ({down}, {across}); its tiles begin at {corners[0]} of A and at "
        f"{corners[1]} of B",
    ),
}

# %% tags=["hide-input"]
said = "The kernel loops over K in BLOCK_SIZE_K chunks; pointers are advanced each K-iteration"
page[said] = (
    chunks == [(0, 16), (16, 32)] and len(dots) == 2,
    f"K = 30; program 4 multiplies {len(dots)} pairs of tiles and loads the columns "
    f"{' and '.join(f'{i} to {j - 1}' for i, j in chunks)} of A",
)
page["Each iteration loads A/B sub-tiles with masks for tail handling"] = (
    (first.elements, last.elements) == (256, 16 * 14) and not t.findings,
    f"{first.elements} elements of A, then {last.elements}: two of 16 columns are masked",
)
page["The final tile is stored with a mask to guard out-of-bounds elements"] = (
    not t.findings and not wrong,
    f"75×45×30 in tiles of 16: {len(t.findings)} findings with the mask",
)
claims_table([claim(said, source=PAGE, holds=h, evidence=e) for said, (h, e) in page.items()])

# %% [markdown]
# All five hold. And the masks are needed: take one of them away, and the trace reports accesses outside the matrices.

# %% tags=["hide-input"]
# NBVAL_CHECK_OUTPUT
open_ended = edited(kernel, "mask=(m[:, None] < M) & (n[None, :] < N)", "mask=None")
tailless = edited(kernel, "if MASK_K:", "if False:")
rows = []
for name, variant in {"the store": open_ended, "the loads, along K": tailless}.items():
    t, wrong = traced(variant, 2)
    found = t.findings[0]
    row = {"no mask for": name, "finding": found.kind, "elements": found.count}
    rows.append(row | {"wrong elements of C": wrong})
table(rows)

# %% [markdown]
# ## Does the model predict chapter 8's kernels?
#
# The model of the cache takes programs that start in order and keep pace, and a cache that drops the least recently used tile. Before it is trusted with a new kernel, ask it about old ones. Chapter 8's CUDA kernels go row by row as well, in float32. The profiler has counted the bytes that they read from memory at 4096 × 4096 × 4096. Here the model has the whole L2, 60 MiB.

# %% tags=["hide-input"]
# NBVAL_CHECK_OUTPUT
chapter_8 = counters.reference()
shapes = {"cuda_best": (128, 256, 8), "cuda_vectorised": (128, 128, 8)}
shapes |= {"cuda_warp_tiles": (128, 128, 8), "cuda_shared_32": (32, 32, 32)}
rows, off = [], {}
for name, block in shapes.items():
    x, y, _ = chapter_8[name].longest.block
    there = round(chapter_8[name]["occupancy_pct"] / 100 * 2048 / (x * y))
    setting = Setting(4096, 4096, 4096, block, alive=there * H200.sms, itemsize=4)
    expected, counted = traffic(setting, L2).missed, chapter_8[name]["dram_read_bytes"]
    off[name] = counted / expected
    row = {"rung": name, "blocks on a multiprocessor": there, "model (MB)": expected / 1e6}
    rows.append(row | {"counted (MB)": counted / 1e6, "counted / model": off[name]})
table(rows)

# %% tags=["hide-input"]
claim(
    "Waves in step and a cache that drops the least recently used tile predict what comes from "
    "memory, for a kernel with one block on a multiprocessor",
    source="chapter 10",
    holds=abs(off["cuda_best"] - 1) < 0.1,
    evidence=f"cuda_best, one block: {off['cuda_best']:.2f} times the model; with two blocks "
    f"{off['cuda_vectorised']:.2f} and {off['cuda_warp_tiles']:.2f} times, and with blocks of "
    f"1024 threads {off['cuda_shared_32']:.2f} times (book's GPU, 4096³, float32)",
)

# %% [markdown]
# The kernel with one block on a multiprocessor reads what the model says. Of the three with two blocks, one does, and two read more. Two blocks on a multiprocessor need not keep pace: if one gets ahead, the tile that it loaded may be gone when the other needs it. That is a guess; the drift was not measured.
#
# ## Half of the L2, or all of it?
#
# Chapter 10's kernel was counted in seven orders at each of three sizes. Compare both versions of the model, order by order. Only 4096 can tell them apart: there, A and B are 67 MB together, a little more than the whole L2.

# %% tags=["hide-input"]
# NBVAL_CHECK_OUTPUT
taken, rows = counters.order(), []
for edge in taken.edges:
    for group_m in taken.groups(edge):
        setting, counted = Setting(edge, edge, edge, group_m=group_m), taken.times(edge, group_m)
        row = {"N": edge, "GROUP_M": group_m, "counted: A and B, times": counted}
        for name, room in {"whole": L2, "half": L2 // 2}.items():
            row[f"model, {name} L2"] = traffic(setting, room).times
        rows.append(row)
table(rows)

# %% [markdown]
# With half of the L2 the model meets all seven counts at 4096, and with the whole L2 it misses them all. At 8192 both versions say the same: too little row by row, and the right number for most of the groups. At 16384 they are a lower bound only. So it ranks orders well where no program can drift far, and chapter 10 uses it with half of the L2.
#
# ## What reaches the L2
#
# Programs load 12.9 GB at 8192. How much of that do the counters see at the L2, and at memory?

# %% tags=["hide-input"]
# NBVAL_CHECK_OUTPUT
rows = []
for edge in taken.edges:
    for group_m in (1, 8, 16):
        counted = taken.find(edge, group_m)
        row = {"N": edge, "GROUP_M": group_m}
        row["loaded by programs (GB)"] = traffic(Setting(edge, edge, edge), L2).asked / 1e9
        row["read from the L2 (GB)"] = counted.l2_read_bytes / 1e9
        rows.append(row | {"read from memory (GB)": counted["dram_read_bytes"] / 1e9})
table(rows)

# %% [markdown]
# Fewer bytes reach the L2 than programs load. Something on the way serves more than one multiprocessor with one read, and groups help it, too. These counters do not say what it is.
#
# ## Cycles and clock
#
# Chapter 10 finds that at 8192 the order changes the clock and not the cycles. Here are both verdicts. They are about single launches under the profiler, which empties the caches first.


# %% tags=["hide-input"]
def against(edge):
    """Return what row by row costs over groups of 8: (time, cycles), and that in words."""
    rowwise, grouped = taken.find(edge, 1), taken.find(edge, 8)
    time, clock = rowwise.time_ms / grouped.time_ms, rowwise["clock_hz"] / grouped["clock_hz"]
    words = f"row by row takes {time:.2f} times the time of groups of 8, {time * clock:.2f} times "
    words += f"the cycles, at {clock:.2f} times the clock; memory is busy "
    return time, time * clock, words + f"{rowwise['dram_pct']:.0f}% of the time ({taken.gpu})"


# %% tags=["hide-input"]
time, cycles, evidence = against(8192)
said = "At 8192, under the profiler, the order costs no cycles, to 3%; what it costs is clock"
holds = time > 1.03 and abs(cycles - 1) < 0.03
judged = [claim(said, source="chapter 10", holds=holds, evidence=evidence)]
time, cycles, evidence = against(16384)
said = (
    "At 16384, under the profiler, row by row waits for memory: it takes more cycles, and memory "
)
said += "is busy for more than four fifths of the time"
holds = cycles > 1.03 and taken.find(16384, 1)["dram_pct"] > 80
claims_table([*judged, claim(said, source="chapter 10", holds=holds, evidence=evidence)])

# %% [markdown]
# The second verdict must not be carried over to launches that follow each other. There, row by row was faster than under the profiler, and with as many bytes as the profiler counted memory would have been at its peak, or above it. What such launches read was not counted.
#
# ## Other GPUs
#
# Nothing here depends on Triton. What counts are two rates of a chip, its FLOPs and its bytes, and the size of its L2. So ask the model about other GPUs, at 8192 × 8192 × 8192 with the same tiles and one program on each multiprocessor, and with half of the L2, as on the H200. (On an A10 and an L4 a block has 99 KiB of shared memory. That is enough for three stages there: as on chapter 9's A100, what is being multiplied is in registers, and two stages take 96 KiB.)

# %% tags=["hide-input"]
# NBVAL_CHECK_OUTPUT
chips, rows = ("A10", "L4", "A100-SXM4-80GB", "H100 80GB HBM3", "H200"), []
for peak in map(device.lookup, chips):
    arithmetic_ms = 2 * 8192**3 / peak.fp16_tensor_tflops / 1e9
    row = {"GPU": peak.name, "L2 (MiB)": peak.l2_mb, "programs at a time": peak.sms}
    for group_m, name in ((1, "row by row"), (8, "groups of 8")):
        setting = Setting(8192, 8192, 8192, group_m=group_m, alive=peak.sms)
        read = traffic(setting, int(peak.l2_mb * 2**20) // 2).missed
        row[f"memory / arithmetic, {name}"] = read / peak.bandwidth_gbps / 1e6 / arithmetic_ms
    rows.append(row)
table(rows)

# %% [markdown]
# Above 1, memory takes longer than the arithmetic, by the model. On a card with little bandwidth for its tensor cores, such as the L4, the order should decide at this size already. Only the H200 has been timed.
#
# ## Each ingredient alone
#
# The order is one of four things that changed since chapter 9's kernel. The others: pointers instead of block pointers, masks along K only where there is a tail, and two lines of hints. Switch them off one at a time:

# %% tags=["hide-input", "nbval-ignore-output"]
v1, v0 = triton_swizzled.matmul, triton_block_pointers.matmul
switched = {"cuBLAS": torch.matmul, "as it is": v1, "row by row": partial(v1, group_m=1)}
switched |= {"without hints": partial(v1, hints=False), "K masked": partial(v1, mask_k=True)}
switched["block pointers, row by row"] = partial(v0, block=(128, 256, 64), num_warps=8)
alone = {}
if machine.gpu:
    compared = compare(switched, n=8192, dtype="float16", inputs=1, budget_s=1.0)
    alone = dict(compared.ms) if compared.problem.n == 8192 and not compared.left_out else {}
rows = []
for name, took in alone.items():
    rows.append({"kernel": name, "time (ms)": took, "of cuBLAS": alone["cuBLAS"] / took})
table(rows) if rows else say("On a GPU, the times are here.")


# %% tags=["hide-input", "nbval-ignore-output"]
def faster(than, kernel="as it is"):
    """Return whether a kernel beats another by 1% or more, and by how much in words."""
    if not alone:
        return None, "there is no clock here"
    gain = alone[than] / alone[kernel]
    return gain > 1.01, f"{kernel}, {gain:.3f} times as fast as {than} (8192³)"


together = "matmul_v1 improves performance by reducing memory traffic with tile reuse, improving "
together += "cache locality via swizzle, and enabling better vectorization through contiguity hints"
page = {together: faster("block pointers, row by row")}
said = "A more optimized tiling strategy: explicit pointer arithmetic"
page[said] = faster("block pointers, row by row", "row by row")
claims_table([claim(said, source=PAGE, holds=h, evidence=e) for said, (h, e) in page.items()])

# %% tags=["hide-input", "nbval-ignore-output"]
own = {"The order alone makes the kernel faster at 8192": faster("row by row")}
holds, evidence = faster("K masked")
own["Masks for a tail that is not there cost nothing"] = (
    None if holds is None else not holds,
    evidence,
)
claims_table(
    [claim(said, source="chapter 10", holds=h, evidence=e) for said, (h, e) in own.items()]
)

# %% [markdown]
# In the book's runs on an H200, only the order shows at this size. The other three stay within about two percent. So what are hints for?
#
# ## What a hint promises
#
# `tl.multiple_of(n, 256)` says that the first of 256 column numbers is a multiple of 256. `tl.max_contiguous(n, 256)` says that the others follow one by one. With that, the compiler may load eight neighbours at once, 16 bytes. Without hints it has to find out by itself. Of each size and each stride it knows whether 16 divides it, because Triton compiles the kernel anew for each case.
#
# <details><summary><b>Predict.</b> All sizes are multiples of 16. The column numbers are <code>(tile_n * 256 + arange(256)) % N</code>. Can the compiler tell that eight of them in a row are neighbours? And with N = 4090?</summary>
#
# In the first case, yes: N is a multiple of 16, so the wrap falls between two runs of sixteen. With 4090 it may fall inside a run of eight, so the compiler has to load each element by itself, unless it is promised otherwise.
#
# </details>
#
# The table shows how many bytes one thread copies at once, in the code for compute capability 9.0. “4090 in padded rows” is a matrix with 4090 columns whose rows begin 4096 elements apart.

# %% tags=["hide-input", "nbval-ignore-output"]
matrices = {"4096": (4096, 4096), "4090 in padded rows": (4090, 4096), "4090": (4090, 4090)}
jobs = {}
for name, (edge, row) in matrices.items():
    a = torch.empty((edge, 4096), dtype=torch.float16, device=machine.device)
    b = torch.empty((4096, row), dtype=torch.float16, device=machine.device)[:, :edge]
    for hints in (True, False):
        [jobs[name, hints]] = launched(triton_swizzled.matmul, a, b, hints=hints)
codes = tile_codes(jobs)


# %% tags=["hide-input", "nbval-ignore-output"]
def sizes(code, *kinds):
    """Return in words how many accesses there are of how many bytes."""
    counts = sum((code.widths[kind] for kind in kinds), Counter())
    return ", ".join(f"{number} of {size} B" for size, number in sorted(counts.items())[::-1])


rows = []
for (name, hints), code in codes.items():
    row = {"N": name, "hints": "yes" if hints else "no", "loads": sizes(code, "loads", "copies")}
    rows.append(row | {"stores": sizes(code, "stores"), "shared (KiB)": code.shared_bytes // 1024})
table(rows)

# %% tags=["hide-input", "nbval-ignore-output"]
wider = [name for name in matrices if codes[name, True].widths != codes[name, False].widths]
others = [name for name in matrices if name not in wider]
claim(
    "tl.multiple_of and tl.max_contiguous tell the compiler the access pattern is aligned and "
    "contiguous. This helps Triton generate vectorized loads",
    source=PAGE,
    holds=bool(wider),
    evidence=f"accesses are wider with hints than without for {' and '.join(wider) or 'none'}; "
    f"as wide for {' and '.join(others) or 'none'}",
)

# %% [markdown]
# Where every size is a multiple of 16, the compiler has found out by itself what the hints say. Where a row may begin anywhere, no promise makes its address a multiple of 16 bytes: for plain 4090 the accesses are as narrow with hints as without. In between is the case in which they help: a size that 16 does not divide, in rows that it does. The last column shows what is at stake. An asynchronous copy takes at least 4 bytes, so a matrix that is loaded 2 bytes at a time is not staged ahead.
#
# And in this case the promise is false. In the last tile the columns run up to 4089 and go on at 0. The compiler relies on the promise and loads what is in memory behind column 4089, which is the padding. That does no harm, only because those columns are masked when C is stored. The compiler does not check a hint.
#
# ## Sources
#
# The kernel and its claims: {cite:p}`tritonkernels`. Least recently used: {cite:p}`hennessy2019`. Rates of the GPUs: the data sheets named in `device.py`, for the H200 {cite:p}`h200datasheet`. Shared memory of a block: {cite:p}`cudaguide`.
