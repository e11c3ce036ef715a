#!/usr/bin/env bash
# Package: cuda-tile 1.7.0, nvidia-cuda-tileiras 13.4.92 and 13.5.37, numpy 2.4.6
# Date: 2026-11-29
# Behaviour: ct.mma on tiles of float32 compiles for sm_90 to FMUL and FADD by tileiras 13.4, which
#     rounds twice, and to FFMA by 13.5, which rounds once. The Tile IR is the same. Of the two, the
#     extra cuda-tile[tileiras] allows 13.4.
# Guess: Product and sum of float32 are fused, as in Triton's tl.dot and in CUDA C++, and a minor
#     version of the assembler does not change results.
# Seen:
#     tileiras 13.4.92: 1024 FMUL, 1056 FADD, 0 FFMA
#     tileiras 13.5.37: 0 FMUL, 32 FADD, 1024 FFMA

source "$(dirname "$0")/lib.sh"
install old --no-deps cuda-tile==1.7.0 numpy==2.4.6 typing_extensions==4.16.0 \
    nvidia-{cuda-tileiras,cuda-nvcc,cuda-crt,nvvm}==13.4.92
install new --no-deps nvidia-{cuda-tileiras,cuda-nvcc,cuda-crt,nvvm,cuda-nvdisasm}==13.5.37
seen=$(CUDA_TILE_CACHE_DIR=off run old <<'END'
import os
import re
import subprocess
from pathlib import Path

import cuda.tile as ct
from cuda.tile.compilation import (
    ArrayConstraint,
    CallingConvention,
    KernelSignature,
    export_kernel,
)


@ct.kernel
def product(a, b, c):
    total = ct.zeros((64, 64), dtype=ct.float32)
    for k in range(ct.cdiv(a.shape[1], 32)):
        x = ct.load(a, (0, k), (64, 32))
        y = ct.load(b, (k, 0), (32, 64))
        total = ct.mma(x, y, total)
    ct.store(c, (0, 0), total)


def tools(name):
    """Return the folder of programs that the packages in an environment bring."""
    return next(Path(name).resolve().glob("lib/python*/site-packages/nvidia/cu13/bin"))


array = ArrayConstraint(
    ct.float32,
    2,
    index_dtype=ct.int32,
    stride_lower_bound_incl=0,
    alias_groups=(),
    may_alias_internally=False,
    stride_constant=(None, 1),
    stride_divisible_by=(4, 1),
    base_addr_divisible_by=16,
)
signature = KernelSignature([array] * 3, CallingConvention.cutile_python_v2(), symbol="product")
path = os.environ["PATH"]
os.environ["PATH"] = f"{tools('old')}:{path}"  # it asks tileiras which Tile IR it reads
export_kernel(
    product, [signature], "product.tileir", output_format="tileir_bytecode", gpu_code="sm_90"
)
for name, version in (("old", "13.4.92"), ("new", "13.5.37")):
    command = [tools(name) / "tileiras", "product.tileir", "--gpu-name", "sm_90", "-O3"]
    command += ["--host-arch", "x86_64", "--host-os", "linux", "-o", f"{name}.cubin"]
    subprocess.run(command, check=True, env=os.environ | {"PATH": f"{tools(name)}:{path}"})
    command = [tools("new") / "nvdisasm", "-c", f"{name}.cubin"]
    code = subprocess.check_output(command, text=True)
    words = re.findall(r"\w+", code)
    counts = (f"{words.count(each)} {each}" for each in ("FMUL", "FADD", "FFMA"))
    print(f"tileiras {version}: {', '.join(counts)}")
END
)
judge "$seen"
