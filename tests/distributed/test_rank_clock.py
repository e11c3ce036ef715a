"""distributed/clock.py: the profiler's events are told apart by name; torch's ways are there."""

from __future__ import annotations

import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from tiled_matmul.dispatch import candidates, rule  # noqa: E402
from tiled_matmul.dispatch.costs import Product  # noqa: E402
from tiled_matmul.distributed import clock  # noqa: E402
from tiled_matmul.kit.programs import launched  # noqa: E402
from tiled_matmul.ladder import rung  # noqa: E402

THEIRS = {
    "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)": "transfer",
    "void c10d::symmetric_memory::barrier_kernel<4>(unsigned int**, int)": "other",
    "void at::native::vectorized_elementwise_kernel<4, float>(int)": "other",
    "nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_NNT": "other",
}


def kind(name, cat="kernel"):
    return clock._kind({"cat": cat, "name": name})


@pytest.mark.parametrize("name", THEIRS)
def test_a_kernel_of_another_is_no_product(name):
    assert kind(name) == THEIRS[name]
    assert kind("Memcpy PtoP (Device -> Device)", cat="gpu_memcpy") == "transfer"


def test_every_kernel_of_a_choice_is_a_product():
    product = Product(256, 256, 256, 132)
    choices = [*rule.contenders(product), *candidates.candidates(256, 256, 256, 132)]
    a = b = torch.zeros((256, 256), dtype=torch.float16)
    names, modules = set(), set()
    for choice in choices:
        if choice.module in modules or not rung(choice.module).available:
            continue
        modules.add(choice.module)
        launches = launched(rung(choice.module).matmul, a, b, **choice.options)
        names |= {kernel.__name__ for kernel, *_ in launches}
    assert len(modules) > 3 and {kind(name) for name in names} == {"product"}, (modules, names)


def test_torch_s_fused_operator_is_there_for_a_rank_that_has_done_nothing_else():
    program = "import tiled_matmul.distributed.clock as c; c.torch.ops.symm_mem.{}"
    command = [sys.executable, "-c", program.format("fused_all_gather_matmul")]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
