#!/usr/bin/env bash
# Package: tilelang 0.1.15, torch 2.13.0, numpy 2.4.6, nvidia-cuda-nvcc 13.0.88
# Date: 2026-11-29
# Behaviour: T.gemm on tiles of float32 compiles for sm_90a to TF32 on tensor cores, which read 19
#     of the 32 bits of a factor. No instruction rounds to TF32 before: a factor is multiplied as it
#     was loaded, and its last 13 bits are cut off. No argument of T.gemm and no option of the
#     compiler asks for float32.
# Guess: float32 times float32 is float32, or at least each factor is rounded to the nearest TF32.
# Seen:
#     32 mma of tf32, 0 cvt to tf32, 0 fma of float32
#     factors come from ld.shared, ldmatrix
#     arguments and options that name a precision: none

source "$(dirname "$0")/lib.sh"
install tilelang tilelang==0.1.15 torch==2.13.0 numpy==2.4.6 apache-tvm-ffi==0.1.12 \
    torch_c_dlpack_ext==0.1.5 z3-solver==4.15.4.0
install cuda --no-deps nvidia-{cuda-nvcc,cuda-crt,nvvm}==13.0.88 nvidia-cuda-runtime==13.0.96 \
    nvidia-cuda-cccl==13.0.85
seen=$(run tilelang <<'END'
import inspect
import re
import subprocess
from pathlib import Path

import tilelang.language as T
from tilelang.engine.lower import lower
from tilelang.transform import PassConfigKey
from tvm.target import Target


@T.prim_func
def product(
    a: T.Tensor((128, 128), T.float32),
    b: T.Tensor((128, 128), T.float32),
    c: T.Tensor((128, 128), T.float32),
):
    with T.Kernel(1, threads=128):
        x = T.alloc_shared((128, 32), T.float32)
        y = T.alloc_shared((32, 128), T.float32)
        total = T.alloc_fragment((128, 128), T.float32)
        T.clear(total)
        for k in T.serial(4):
            T.copy(a[0, k * 32], x)
            T.copy(b[k * 32, 0], y)
            T.gemm(x, y, total)
        T.copy(total, c)


target = Target({"kind": "cuda", "arch": "sm_90a"})
with target:
    code = lower(product, target=target, target_host="c").kernel_source
Path("kernel.cu").write_text(code)
own = Path(T.__file__).parents[1]
cuda = next(Path("cuda").resolve().glob("lib/python*/site-packages/nvidia/cu13"))
command = [cuda / "bin" / "nvcc", "-ptx", "-arch=sm_90a", "-O3", "-std=c++17", "-w", "kernel.cu"]
for folder in (own / "src", own / "3rdparty" / "cutlass" / "include", cuda / "include"):
    command += ["-I", folder]
subprocess.run(command, check=True)
ptx = Path("kernel.ptx").read_text()

products = re.findall(r"\bmma\.sync\S*\.tf32\.tf32\.f32 *{.*?}, *{(.*?)}, *{(.*?)},", ptx)
rounded, fused = (len(re.findall(each, ptx)) for each in (r"\bcvt\S*\.tf32", r"\bfma\.rn\S*\.f32"))
print(f"{len(products)} mma of tf32, {rounded} cvt to tf32, {fused} fma of float32")
sources = {}
for name, results in re.findall(r"^\s*([a-z][\w.:]+)\s+({.*?}|%\w+),", ptx, re.MULTILINE):
    for register in re.findall(r"%\w+", results):
        sources.setdefault(register, set()).add(re.match(r"ldmatrix|ld\.shared|.*", name)[0])
factors = re.findall(r"%\w+", str(products))
print("factors come from", ", ".join(sorted(set().union(*(sources[each] for each in factors)))))
names = [*inspect.signature(T.gemm).parameters, *(key.name for key in PassConfigKey)]
found = [each for each in names if re.search("tf32|prec|ieee|round", each, re.IGNORECASE)]
print(f"arguments and options that name a precision: {', '.join(found) or 'none'}")
END
)
judge "$seen"
