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
# # Evidence for chapter 10: block pointers
#
# Chapter 10 introduces Triton with a kernel in block pointers. Here is the evidence that would have interrupted it: what the source says about the kernel and what a trace and the compiled code show, why the largest tile needs eight warps, where float16 sums leave the allowed error, and how a fragment product of an A100 is spread over the lanes of a warp.

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
import inspect
import warnings

import torch
import triton

from tiled_matmul.ladder import triton_block_pointers
from tiled_matmul.page import (
    Problem,
    backend,
    changes,
    claim,
    claims_table,
    compare,
    device,
    diagnose,
    edited,
    function_of,
    gamma,
    matmul_with,
    table,
    tile_codes,
    trace_tiles,
    whole_numbers,
)
from tiled_matmul.plots import fragments as figures

# %% tags=["hide-input"]
warnings.filterwarnings("ignore", "tl.make_block_ptr")
warnings.filterwarnings("ignore", "invalid value")  # NumPy's, when the interpreter meets NaN
kernel = triton_block_pointers.triton_block_pointers_kernel


def job(kernel=kernel, block=(64, 64, 64), cc=(9, 0), **options):
    """Return what to compile: a kernel for matrices of 1024 × 1024, and for which GPU."""
    x = torch.empty(1024, 1024, dtype=torch.float16, device="meta")
    arguments = (x, x, x, *[1024] * 3, *[1024, 1] * 3, *block, "ieee")
    return kernel, arguments, {"num_warps": 4, "num_stages": 3} | options, cc


def wrong(kernel, *inputs):
    """Return how many elements of C are wrong, in tiles of 16 by a variant of the kernel."""
    c = matmul_with(triton_block_pointers, kernel)(*inputs, block=(16, 16, 16))
    return diagnose(c, *inputs).wrong


def traced(kernel, a, b):
    """Return the trace of one product in tiles of 16. Nothing is compiled."""
    a, b = a.cpu(), b.cpu()
    (m, k), n = a.shape, b.shape[1]
    c = a.new_empty((m, n))
    strides = (*a.stride(), *b.stride(), *c.stride())
    grid = (triton.cdiv(n, 16), triton.cdiv(m, 16))
    return trace_tiles(kernel, grid, a, b, c, m, n, k, *strides, 16, 16, 16, "ieee")


# %% [markdown]
# ## What the page says of the kernel
#
# The kernel comes from a page that describes two, `matmul_v0` and `matmul_v1` {cite:p}`tritonkernels`. Chapter 11's is the second one. Eight of the page's sentences say what the first kernel does. They are judged by a trace of twelve programs, by products in which 16 does not divide the sizes, and by the compiled code.
#
# The trace is of 40 × 48 by 48 × 56 in tiles of 16. Two variants of the kernel test the boundary checks: one without the checks of the loads, where sevens stand beyond the edges of A and B, and one without the check of the store.

# %% tags=["hide-input"]
M, N, K, T = 40, 56, 48, 16
walk = traced(kernel, *whole_numbers(M, N, K, "float16"))
stores = walk.select(op="store")
loads = walk.select(op="load")
owners = {(event.rows[0] // T, event.cols[0] // T): event.program for event in stores}
as_named = all(program[:2] == (n, m) for (m, n), program in owners.items())
at_home = [e.rows[0] // T == e.program[1] for e in loads if e.array == "a"]
at_home += [e.cols[0] // T == e.program[0] for e in loads if e.array == "b"]
steps = len(loads) // (2 * len(walk.programs))


# %% tags=["hide-input"]
def corners(m, n, k, beyond):
    """Return a and b as the upper left corners of matrices that hold `beyond` elsewhere."""
    views = []
    for values in whole_numbers(m, n, k, "float16"):
        views.append(values.new_full((64, 64), beyond)[: values.shape[0], : values.shape[1]])
        views[-1].copy_(values)
    return views


unchecked = edited(kernel, ', boundary_check=(0, 1), padding_option="zero"', "")
rounded = "acc.to(c.dtype.element_ty)"
bare = edited(kernel, f"{rounded}, boundary_check=(0, 1)", rounded)
strays = [f for f in traced(bare, *whole_numbers(M, N, K, "float16")).findings if f.op == "store"]
with_checks, without_them = (wrong(each, *corners(20, 35, 40, 7)) for each in (kernel, unchecked))
text = inspect.getsource(function_of(kernel))
pointers = text.count("tl.make_block_ptr(")
words = [word for word in ("thread", "sync", "shared") if word in text]
ragged = [(1, 1, 1), (17, 33, 65), (20, 35, 40)]
all_right = not any(wrong(kernel, *whole_numbers(*size, "float16")) for size in ragged)

# %% tags=["hide-input", "nbval-ignore-output"]
plain = tile_codes({"plain": job(num_stages=1)})["plain"]
roundings = plain.ttgir.count("arith.truncf")
page = {}
page["A straightforward blocked matmul using make_block_ptr for A/B/C tiles"] = (
    pointers == len({event.array for event in loads + stores}) == 3,
    f"{pointers} block pointers, and by the trace all loads and stores go through them",
)
page["Each program instance computes one output tile"] = (
    len(stores) == len(walk.programs) == len(owners) and not walk.findings,
    f"{len(walk.programs)} programs store {len(owners)} tiles, each element of C once",
)
page["Map program IDs to output tiles (pid_m, pid_n)"] = (
    as_named,
    f"program (x, y) stores the tile in row y and column x, all {len(owners)} of them",
)
page["Build pointers to A and B sub-tiles for the current output tile"] = (
    all(at_home),
    f"{sum(at_home)} of {len(loads)} loads take A's rows and B's columns from where C's tile is",
)

# %% tags=["hide-input", "nbval-ignore-output"]
page['Loads with boundary checks and padding_option="zero" to handle edge tiles'] = (
    with_checks == 0 < without_them,
    f"20×35×40: {with_checks} elements wrong, without the checks {without_them}",
)
page["Store the tile back to C with an out-of-bounds mask"] = (
    sum(event.elements for event in stores) == M * N and bool(strays),
    f"{M * N:,} elements are stored, without the check {sum(f.count for f in strays)} more",
)
page["Accumulates into c_acc and stores the fp16 output tile"] = (
    roundings == 1,
    f"in TTGIR sums are rounded to float16 (arith.truncf) in {roundings} place, after the loop; "
    f"the loop over K has {steps} steps of {T} for K = {K}",
)
page["This is the baseline implementation for correctness and clarity"] = (
    not words and all_right,
    f"right for {len(ragged)} shapes that no tile fits; its text has no thread, no barrier and no "
    "shared memory",
)
claims = [
    claim(said, source="Matmul (Triton), matmul_v0", holds=holds, evidence=evidence)
    for said, (holds, evidence) in page.items()
]
claims_table(claims)

# %% [markdown]
# All eight describe what the kernel does. Two more sentences of that page are in chapter 10: the one about a single size for all sides of a tile, and the one about sums in float32.
#
# ## Twice the warps for the largest tile
#
# A tile of 128 × 256 has 32,768 sums. Four warps are 128 threads, so each would hold 256 sums, and a thread has 255 registers at most. Eight warps need 128 sums each. Does that decide the speed?

# %% tags=["hide-input", "nbval-ignore-output"]
BLOCK = (128, 256, 64)
codes = tile_codes({warps: job(block=BLOCK, num_warps=warps) for warps in (4, 8)})
calls = {"cuBLAS": lambda a, b: a @ b}
if machine.gpu:
    most = torch.cuda.get_device_properties(0).shared_memory_per_block_optin
    cc = backend.select().gpu.capability
    on_this = tile_codes({w: job(block=BLOCK, cc=cc, num_warps=w) for w in (4, 8)})
    for warps, code in on_this.items():
        if cc >= (8, 0) and code.shared_bytes <= most:
            calls[warps] = lambda a, b, warps=warps: triton_block_pointers.matmul(
                a, b, block=BLOCK, num_warps=warps
            )
compared = compare(calls, n=4096, dtype="float16", budget_s=2.0)
rows = []
for warps, code in codes.items():
    row = {"warps": warps, "sums per thread": 128 * 256 // (32 * warps)}
    row |= {"registers, H200": code.registers, "bytes spilled": code.spilled_bytes}
    if warps in compared.ms:
        row["TFLOP/s here, 4096³"] = compared.tflops[warps]
    rows.append(row)
table(rows)

# %% tags=["hide-input", "nbval-ignore-output"]
spills = [code.spilled_bytes for code in codes.values()]
timed = all(warps in compared.ms for warps in codes)
evidence = f"for an H200, 4 warps spill {spills[0]} bytes and 8 warps {spills[1]}; "
if timed:
    evidence += f"{compared.tflops[4]:.0f} and {compared.tflops[8]:.0f} TFLOP/s"
else:
    evidence += "not timed here"
claim(
    "Twice the warps make a tile of 128×256 faster, because its sums then fit the registers",
    source="chapter 10",
    holds=compared.tflops[8] > 1.1 * compared.tflops[4] if timed else None,
    evidence=evidence,
)

# %% [markdown]
# ## Sums in float16
#
# The kernel adds in float32 and rounds once, at the end. With float16 sums, each addition rounds the sum so far by up to 2⁻¹¹. If all these errors had the same sign, four times as many additions would make four times the error. Their signs are random, so the error should grow with the square root of K: it should **double** when K grows fourfold. Inputs are positive here, so that nothing cancels.

# %% tags=["hide-input"]
# NBVAL_CHECK_OUTPUT
narrow = edited(kernel, "(BLOCK_M, BLOCK_N), tl.float32", "(BLOCK_M, BLOCK_N), tl.float16")
narrow = edited(narrow, "input_precision=PRECISION", "out_dtype=tl.float16")
changes(kernel, narrow)


# %% tags=["hide-input", "nbval-ignore-output"]
def largest_error(kernel, k):
    """Return the largest error of a product of positive numbers, relative to |A|·|B|."""
    a, b = (x.abs().to(machine.device) for x in Problem(32, 32, k, "float16").inputs(device="cpu"))
    c = matmul_with(triton_block_pointers, kernel)(a, b, block=(32, 32, 32))
    exact = a.double() @ b.double()
    return float(((c.double() - exact).abs() / exact).max())


rows, worst = [], {}
for k in machine.pick(gpu=(32, 128, 512, 2048, 8192), simulator=(32, 128, 512, 2048)):
    allowed = gamma(k, "float32") + 2**-11 * (1 + gamma(k, "float32"))
    row = {"K": k}
    for name, each in {"float32 sums": kernel, "float16 sums": narrow}.items():
        worst[name, k] = largest_error(each, k)
        row[f"{name}: error, of the allowed"] = worst[name, k] / allowed
    rows.append(row)
table(rows)

# %% tags=["hide-input", "nbval-ignore-output"]
last = rows[-1]
singles, halves = (
    last[f"{name}: error, of the allowed"] for name in ("float32 sums", "float16 sums")
)
grows = worst["float16 sums", k] / worst["float16 sums", k // 4]
claim(
    "Products of float16 need sums in float32",
    source="chapter 10",
    holds=halves > 1 >= singles,
    evidence=f"at K = {k:,} the error is {singles:.2f} of what is allowed with float32 sums, "
    f"{halves:.1f} times it with float16 sums; from K = {k // 4:,} on that has grown "
    f"{grows:.1f} times",
)

# %% [markdown]
# How often a sum is rounded on the way depends on the machine: in the interpreter once for each tile, on a tensor core at least once for each instruction, which is 16 of K. The error leaves the bound in either case.
#
# ## One fragment product of an A100
#
# On an A100 the same kernel compiles to `mma.sync.m16n8k16`: one warp multiplies 16 × 16 elements of A by 16 × 8 of B. The 32 lanes hold the operands together, in places that the hardware prescribes {cite:p}`ptxisa`.

# %% mystnb={"figure": {"caption": "A fragment product, <code>mma.sync.m16n8k16</code>: 16 \u00d7 16 of A by 16 \u00d7 8 of B. Black is what one lane of 32 holds.", "name": "fig-moved-10-fragment"}} tags=["hide-input"]
figures.fragment_product(lane=9)

# %% [markdown]
# A multiply-add reads three registers for one product. Here a lane holds 8 float16 of A in 4 registers, 4 of B in 2, and 4 sums in 4. Those ten registers serve 2048 / 32 = 64 products, **6.4** for each register. It is chapter 7's thread tile again, inside an instruction: each element is read once and multiplied many times. And one instruction is issued where a warp would issue 64.
#
# The result of a Hopper `wgmma` repeats this pattern for C: each of four warps holds 16 rows, in groups of eight columns. What the data sheets promise, in TFLOP/s:

# %% tags=["hide-input"]
rows = []
for name in ("T4", "A100-SXM4-80GB", "H200", "B200"):
    rates = device.PEAKS[name]
    row = {"GPU": name.split("-")[0], "float32, CUDA cores": rates.fp32_tflops}
    row |= {"float16, tensor cores": rates.fp16_tensor_tflops}
    row |= {"times": rates.fp16_tensor_tflops / rates.fp32_tflops}
    rows.append(row | {"source": rates.source.split(",")[0].split(";")[0]})
table(rows)

# %% [markdown]
# Sources: {cite:p}`tritonkernels`, {cite:p}`ptxisa`, and the data sheets named in `device.py`.
