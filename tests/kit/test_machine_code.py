"""Kept machine code of Numba's kernels: a later process finds it, and only if all is equal."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys

import numpy as np
import pytest

from tiled_matmul.dispatch.splits import SETTINGS
from tiled_matmul.kit import machine_code
from tiled_matmul.kit.constants import with_constants
from tiled_matmul.ladder import cuda_best, cuda_unrolled

SIGNATURE, CC = ("array(float32, 1d, C)",), (9, 0)


def variant(setting, fours=True, **options):
    chosen = setting.constants(fours)
    return with_constants(cuda_best.cuda_best_kernel, **chosen, **options)


class Plain:
    """As much of a dispatcher as a description asks for, which the interpreter's kernels lack."""

    def __init__(self, kernel, **options):
        self.py_func, self.targetoptions = kernel.py_func, options


def described(kernel, signature=SIGNATURE, cc=CC, **options):
    return machine_code._description(Plain(kernel, **options), signature, cc)


def test_whatever_changes_the_code_changes_its_description():
    first = variant(SETTINGS[0])
    known = {
        described(first),
        described(variant(SETTINGS[1])),
        described(variant(SETTINGS[2])),
        described(variant(SETTINGS[0], fours=False)),
        described(first, max_registers=128),
        described(first, signature=("array(float64, 1d, C)",)),
        described(first, cc=(8, 0)),
        described(cuda_unrolled.cuda_unrolled_kernel),
    }
    assert len(known) == 8
    assert described(first) == described(variant(SETTINGS[0]))


def test_numbers_have_the_types_that_numba_takes_them_for():
    for number, size in ((3, 8), (2.5, 8), (np.float32(2.5), 4), (np.int32(7), 4)):
        made = machine_code._number(number)
        assert (made.value, ctypes.sizeof(made)) == (number, size)
    with pytest.raises(TypeError, match="a kernel takes tensors and numbers, got 'x'"):
        machine_code._number("x")


def test_the_folder_is_the_users_unless_one_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("TILED_MATMUL_COMPILED", str(tmp_path / "named"))
    assert machine_code.cache() == tmp_path / "named"
    monkeypatch.delenv("TILED_MATMUL_COMPILED")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert machine_code.cache() == tmp_path / "tiled_matmul"


AGAIN = """
import torch
from tiled_matmul.check import assert_matmul
from tiled_matmul.ladder import cuda_best
a, b = torch.randn(70, 64, device="cuda"), torch.randn(64, 72, device="cuda")
assert_matmul(cuda_best.matmul(a, b), a, b)
from tiled_matmul.kit import machine_code
print(sum(len(kernel.overloads) for kernel, *_ in machine_code._codes))
"""


@pytest.mark.gpu
def test_a_second_process_compiles_nothing(tmp_path):
    environment = os.environ | {"TILED_MATMUL_COMPILED": str(tmp_path)}
    command = [sys.executable, "-c", AGAIN]
    compiled = []
    for _ in range(2):
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        compiled.append(int(done.stdout))
    assert compiled == [1, 0]
