# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# ## What follows a product
#
# A layer of a model is rarely a product alone. The first half of an MLP is GELU(x · wᵀ + bias), and the second half adds its result to what came in. So the layers of a transformer compute
#
# $$\text{activation}(a \cdot b + \text{bias}) + \text{residual}.$$
#
# What does this cost? The arithmetic is tiny: a dozen instructions for each element of C, where the product spends 2·K operations. But each step is a kernel of its own, and a kernel's results travel through memory.

# %% tags=["hide-input"]
# Set-up of this section.
import torch
from torch.nn import functional

from tiled_matmul.ladder import triton_fused
from tiled_matmul.measure import fused
from tiled_matmul.models.epilogue import Layer
from tiled_matmul.page import say, show_source, table, time_interleaved

# %% [markdown]
# <details><summary><b>Predict.</b> 8192 tokens, width 2048, hidden width 8192, float16: C = x · wᵀ has 67 million elements. How many bytes does GELU move if it is a kernel of its own? The H200's memory delivers 4.8 TB/s. How long is that, next to a product of 370 µs?</summary>
#
# It reads C and writes it again: 2 · 2 bytes · 67 million = 268 MB. That takes 56 µs at the very least, 15% of the product's time, for an operation that computes almost nothing.
#
# </details>
#
# Count the bytes of the whole layer. Each kernel reads its operands once and writes its result once:

# %% tags=["lesson"]
rows = []
for m, n, k in ((8192, 8192, 2048), (4096, 14336, 4096), (16384, 4096, 64)):
    layer = Layer(m, n, k, activation=True, residual=True)
    moved = layer.separate_bytes, layer.two_kernels_bytes, layer.fused_bytes
    names = "a kernel a step (MB)", "two kernels (MB)", "one kernel (MB)"
    row = {"M × N × K": f"{m} × {n} × {k}"}
    rows.append(row | {name: b / 1e6 for name, b in zip(names, moved, strict=True)})
table(rows)

# %% [markdown]
# *Picture: the tile of C as three rows of arrows. Above, one arrow pair into memory for each step (product, GELU, residual). Below, one path: registers → registers → registers → memory. Bars beside them have the lengths of the table.*
#
# The bias costs nothing extra in either column, because cuBLAS adds it within the product. That is the idea to copy: when a tile's sums are complete, they are still in registers. So finish them there, and store C once. This last part of a kernel is called its *epilogue*.
#
# ### Fused, and slower
#
# Take `triton_persistent`, and apply the exact GELU, x · (1 + erf(x/√2)) / 2, to the accumulators before they are stored. It is one line. Is it faster than torch, which needs a second kernel?

# %% tags=["hide-input"]
LONG = (8192, 8192, 2048)


def timed(names, m, n, k):
    """Return the milliseconds of torch's layer, and of the fused one with each activation."""
    x, w = (torch.randn(r, k, device="cuda").half() / k**0.25 for r in (m, n))
    bias = torch.randn(n, device="cuda").half()
    ways = {"torch": lambda: functional.gelu(functional.linear(x, w, bias))}
    for name in names:
        ways[name] = lambda name=name: triton_fused.matmul(x, w.T, bias=bias, activation=name)
    took = time_interleaved(ways, device="gpu", graphs=True, budget_s=1)
    return {name: timing.median_ms for name, timing in took.items()}


# %% tags=["lesson", "nbval-ignore-output"]
if fast:
    ms = timed(("gelu_erf", "gelu"), *LONG)
    say(f"Fused with erf: **{ms['torch'] / ms['gelu_erf']:.2f}** times the speed of torch.")

# %% [markdown]
# It saves 268 MB of traffic and is still slower. Why? While a program finishes a tile, its tensor cores wait: the same warps that start the products now compute erf. In a kernel of its own, GELU's arithmetic hides behind its loads and stores. Here it hides behind nothing.
#
# <details><summary><b>Predict.</b> A multiprocessor issues 128 instructions of threads in a clock. A tile has 128 × 256 elements, and erf takes about 30 instructions. How many clocks do the tensor cores wait? A tile's product with K = 2048 takes 32,768 clocks at their peak rate.</summary>
#
# 32,768 elements · 30 instructions / 128 = 7680 clocks: almost a quarter of the product's time. The traffic that is saved was worth 15%.
#
# </details>
#
# So instructions of an epilogue are expensive. GELU can be had in fewer. With t = |x|, it is max(x, 0) − t · Φ(−t), where Φ is the normal distribution. The second part is small and smooth, and log₂ Φ(−t) is almost a parabola: a polynomial of degree 6 and one power of two give it to 3·10⁻⁷, which is float32's own error at this size.

# %% tags=["lesson"]
# kernel: triton_fused::activated
show_source(triton_fused.activated)

# %% tags=["lesson", "nbval-ignore-output"]
if fast:
    say(f"With this formula: **{ms['torch'] / ms['gelu']:.2f}** times the speed of torch.")

# %% [markdown]
# ### One epilogue for all tiles
#
# A layer's shape still decides about tiles: persistent programs for a large C, small tiles for few rows, parts of K for few tiles. All of them need the same last step, so it is one function. Each kernel calls it where it has whole sums:

# %% tags=["lesson"]
# kernel: triton_fused::finished
show_source(triton_fused.finished)

# %% [markdown]
# <details><summary><b>Predict.</b> With split-K, a program has only a part of each sum. Why can it not apply GELU to its part? Where does the epilogue belong then?</summary>
#
# GELU(p + q) is not GELU(p) + GELU(q), and the bias would be added once for each part. The second kernel adds up the parts, so it is the first to have whole sums: it calls `finished`. It reads and writes C anyway, so the epilogue is free there.
#
# </details>
#
# Here is what was measured on an H200, and what the bytes predicted:

# %% tags=["hide-input"]
more, taken = fused.load()
rows = []
for each in taken:
    case = each.case
    if case.dtype == "float16" and case.steps != "bias":
        separate, _, one = case.layer.predicted_ms(720, 4000)
        row = {"layer": f"{case.m} × {case.n} × {case.k}", "steps": case.steps}
        row |= {"torch (µs)": each.ms["torch"] * 1e3, "fused (µs)": each.ms["triton_fused"] * 1e3}
        rows.append(row | {"ratio": each.ratio(), "predicted": separate / one})
table(rows)

# %% [markdown]
# Where K is short, the product itself is bound by memory, and fusing pays most. Where K is long, the saved traffic is a small share, and the epilogue's instructions take some of it back. Fusing is worth the bytes it saves, minus the clocks for which the tensor cores wait.
#
# Memory agrees. Nsight Compute counted the bytes of each kernel:

# %% tags=["hide-input"]
rows = []
for shape, kernels in more["bytes"].items():
    for row in kernels:
        megabytes = {"read (MB)": row["read"] / 1e6, "written (MB)": row["written"] / 1e6}
        rows.append({"layer": shape, "kernel": row["kernel"][:32]} | megabytes)
table(rows)
