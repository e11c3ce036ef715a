"""The back end, whatever a program imports first: each case is a script in a process of its own."""

import os
import random
import subprocess
import sys

import pytest

from tiled_matmul import page
from tiled_matmul.machine import backend

SIMULATOR = {} if backend.probe_gpu()[0] is None else {backend.OVERRIDE: "simulator"}
SWITCHES = (*backend.SWITCHES.values(), backend.OVERRIDE)
CASES = 24

OTHERS = {
    "numba": "from numba import njit",
    "numba.cuda": "from numba import cuda",
    "triton": "import triton",
    "torch": "import torch",
}
OURS = (
    "from tiled_matmul import trace_tiles, rung",
    "from tiled_matmul.page import setup, trace_tiles",
    "from tiled_matmul.page import trace, watch",
    "from tiled_matmul.ladder import LADDER, cuda_naive",
    "from tiled_matmul.torch import matmul, tuning",
    "from tiled_matmul.plots import programs",
    "from tiled_matmul.models import cache",
    "from tiled_matmul.kit import constants, tile_view",
    "from tiled_matmul.kit import autotune",
    "from tiled_matmul.dispatch import tuned",
    "from tiled_matmul.microscope.cuda import trace",
    "import tiled_matmul.microscope.cuda",
)
ENVIRONMENTS = (
    *({}, {}, {"NUMBA_ENABLE_CUDASIM": "1"}, {"TRITON_INTERPRET": "1"}),
    *({"NUMBA_ENABLE_CUDASIM": "0", "TRITON_INTERPRET": "0"}, {backend.OVERRIDE: "simulator"}),
    {"NUMBA_ENABLE_CUDASIM": "1", "TRITON_INTERPRET": "1", backend.OVERRIDE: "simulator"},
)
LATE = 'import os; os.environ["TRITON_INTERPRET"] = "1"'
NUMBA_KERNEL = """
from numba import cuda

@cuda.jit
def plus_one(x):
    i = cuda.grid(1)
    if i < x.size:
        x[i] += 1
"""
TRITON_KERNEL = """
import triton
import triton.language as tl

@triton.jit
def twice(x, n: tl.constexpr):
    i = tl.arange(0, n)
    v = tl.load(x + i) + tl.zeros((n,), tl.float32)
    tl.store(x + i, 2 * v + 0 * tl.sum(v, 0) + 0 * v.sum(0))
"""
AT_ONCE = """
import numpy as np
import tiled_matmul
import torch

x, y = np.zeros(8), torch.ones(8)
plus_one[1, 8](x)
twice[(1,)](y, 8)
assert x.sum() == 8 and y.sum() == 16
"""
WORKS = """
from tiled_matmul import rung, trace_tiles
from tiled_matmul.page import setup, watch

machine = setup()
import numpy as np
import torch

x = cuda.to_device(np.zeros(8, np.float32))
with watch() as traces:
    plus_one[1, 4](x)
plus_one[2, 4](x[::2])
assert x.copy_to_host().tolist() == [2, 1, 2, 1, 1, 0, 1, 0], x
assert machine.gpu or traces[0].global_stores.lanes == 4  # a GPU ran the kernel itself

y = torch.arange(8.0, device=machine.device)
assert not trace_tiles(twice, (1,), y, 8).findings
twice[(1,)](y, 8)
assert y.tolist() == [4.0 * i for i in range(8)], y

a = torch.eye(32, dtype=torch.float16, device=machine.device)
assert torch.equal(rung("triton_swizzled").matmul(a, a), a)
a = torch.eye(5, device=machine.device)
assert torch.equal(rung("cuda_naive").matmul(a, a), a)
print("works", machine.gpu)
"""


def run_script(tmp_path, text, **environment):
    """Run a script in a process of its own, with these variables only of those that choose."""
    file = tmp_path / "script.py"
    file.write_text(text)
    clean = {name: value for name, value in os.environ.items() if name not in SWITCHES}
    return subprocess.run(
        [sys.executable, file],
        env={**clean, **SIMULATOR, **environment},
        capture_output=True,
        text=True,
        timeout=240,
        cwd=tmp_path,
    )


def drawn(seed):
    """Return the steps of a script that imports and decorates in some order, and the generator."""
    draw = random.Random(seed)
    steps = draw.sample(list(OTHERS.values()), draw.randrange(4))
    steps += draw.sample(OURS, draw.randrange(1, 4))
    names = ", ".join(draw.sample(sorted(page.HOME), 3))
    steps += [f"from tiled_matmul.page import {names}", NUMBA_KERNEL, TRITON_KERNEL]
    draw.shuffle(steps)
    return steps, draw


@pytest.mark.sample(24)
@pytest.mark.parametrize("seed", range(CASES))
def test_every_order_of_imports_works(tmp_path, seed):
    steps, draw = drawn(seed)
    steps.insert(draw.randrange(len(steps)), draw.choice(("", LATE)))
    script, environment = "\n".join((*steps, WORKS)), draw.choice(ENVIRONMENTS)
    done = run_script(tmp_path, script, **environment)
    assert done.stdout.endswith("works False\n"), f"{environment}\n{script}\n{done.stderr}"


@pytest.mark.gpu
@pytest.mark.parametrize("seed", range(CASES, CASES + 6))
def test_every_order_of_imports_works_on_a_gpu(tmp_path, seed):
    script = "\n".join((*drawn(seed)[0], WORKS))
    done = run_script(tmp_path, script, **{backend.OVERRIDE: "gpu"})
    assert done.stdout.endswith("works True\n"), f"{script}\n{done.stderr}"


def test_kernels_of_before_the_course_run_in_its_interpreters(tmp_path):
    """Both libraries were imported as compilers, and the variable was set too late for Triton."""
    done = run_script(tmp_path, NUMBA_KERNEL + TRITON_KERNEL + LATE + AT_ONCE + WORKS)
    assert done.stdout.endswith("works False\n"), done.stderr


COMPILED = """
from tiled_matmul.page import tile_codes, try_compiled

assert tile_codes({"twice": (twice, (torch.ones(8), 8), {})})["twice"].registers > 0
assert try_compiled({"plus_one": (plus_one, np.zeros(8))})["plus_one"].registers > 0
print("compiled")
"""


@pytest.mark.long
@pytest.mark.parametrize("value", ["0", "1"])
def test_kernels_of_before_the_course_compile(tmp_path, value):
    switches = dict.fromkeys(backend.SWITCHES.values(), value)
    script = NUMBA_KERNEL + TRITON_KERNEL + AT_ONCE + COMPILED
    done = run_script(tmp_path, script, **switches, **{backend.OVERRIDE: "simulator"})
    assert done.stdout == "compiled\n", done.stderr


TUNED = """
from pathlib import Path
import torch
from tiled_matmul.torch import matmul, tuning

file = Path("tuned.json")
for _ in range(2):
    with tuning("tuned.json"):
        assert matmul(torch.eye(4), torch.eye(4)).trace() == 4
    print(file.read_text().startswith("{"))
    file.write_text('{"4x4x4": {"module": "triton_split_k", "turned": false, "options": {}}}')
text, changed = file.read_text(), file.stat().st_mtime_ns
with tuning(file):
    matmul(torch.eye(4), torch.eye(4))
print(text == file.read_text(), changed == file.stat().st_mtime_ns)
"""


def test_tuning_in_a_script_without_a_gpu_times_nothing_and_keeps_the_file(tmp_path):
    done = run_script(tmp_path, TUNED)
    assert done.stdout.split() == ["True"] * 4, done.stderr


@pytest.mark.skipif(bool(SIMULATOR), reason="there is a GPU")
def test_a_gpu_that_is_demanded_and_missing_is_said_wherever_it_is_noticed(tmp_path):
    for line in ("from tiled_matmul import trace_tiles", "from tiled_matmul.kit import constants"):
        done = run_script(tmp_path, line, **{backend.OVERRIDE: "gpu"})
        last = done.stderr.splitlines()[-1]
        assert "BackendError: TILED_MATMUL_BACKEND=gpu demands a GPU, but" in last, done.stderr
