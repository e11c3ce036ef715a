"""Twins on the CPU: g++ compiles a kernel, each thread of a block is a fiber, a barrier a round.

What cp.async copies arrives when its group is waited for; until then the target holds other bytes.
Threads run in turn, in one order and then in the other. This is slow, and finds wrong products.
"""

import ctypes
import hashlib
import re
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tiled_matmul.kit import withheld
from tiled_matmul.kit.cuda_cpp import CppKernel

HEAD = r"""
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <ucontext.h>
#include <vector>
using std::max;
using std::min;
using std::size_t;
#define __global__
#define __device__
#define __shared__ static
#define __align__(n) __attribute__((aligned(n)))
#define __syncwarp __syncthreads
struct Dim { unsigned x, y, z; };
struct Copy { void* to; const void* from; unsigned size; bool present; };
struct Fiber {
    ucontext_t context;
    Dim at;
    bool done;
    std::vector<Copy> open;
    std::deque<std::vector<Copy>> groups;
    char* stack;
};
static Dim threadIdx, blockIdx, blockDim, gridDim;
static Fiber* self;
static ucontext_t home;
static void __syncthreads() { swapcontext(&self->context, &home); }
static void begin_copy(void* to, const void* from, unsigned size, bool present) {
    memset(to, 0xA7, size);
    self->open.push_back({to, from, size, present});
}
static void commit_copies() {
    self->groups.push_back(std::move(self->open));
    self->open.clear();
}
static void wait_copies(unsigned newest) {
    for (; self->groups.size() > newest; self->groups.pop_front()) {
        for (const Copy& copy : self->groups.front()) {
            memset(copy.to, 0, copy.size);
            if (copy.present) memcpy(copy.to, copy.from, copy.size);
        }
    }
}
"""
TAIL = r"""
static Parameters* p;
static void thread() {
    KERNEL;
    self->done = true;
    swapcontext(&self->context, &home);
}
extern "C" void run(Parameters* given, const unsigned* sizes) {
    p = given;
    gridDim = {sizes[0], sizes[1], sizes[2]};
    blockDim = {sizes[3], sizes[4], 1};
    std::vector<Fiber> fibers(blockDim.x * blockDim.y);
    for (Fiber& fiber : fibers) fiber.stack = (char*)malloc(1 << 16);
    for (unsigned n = 0; n < gridDim.x * gridDim.y * gridDim.z; n++) {
        blockIdx = {n % gridDim.x, n / gridDim.x % gridDim.y, n / gridDim.x / gridDim.y};
        for (unsigned i = 0; i < fibers.size(); i++) {
            Fiber& fiber = fibers[i];
            fiber.at = {i % blockDim.x, i / blockDim.x, 0};
            fiber.done = false;
            fiber.open.clear();
            fiber.groups.clear();
            getcontext(&fiber.context);
            fiber.context.uc_stack = {fiber.stack, 0, 1 << 16};
            makecontext(&fiber.context, thread, 0);
        }
        for (size_t left = fibers.size(), round = 0; left; round++) {
            for (size_t i = 0; i < fibers.size(); i++) {
                Fiber& fiber = fibers[round % 2 ? i : fibers.size() - 1 - i];
                if (fiber.done) continue;
                self = &fiber;
                threadIdx = fiber.at;
                swapcontext(&home, &fiber.context);
                left -= fiber.done;
            }
        }
    }
    for (Fiber& fiber : fibers) free(fiber.stack);
}
"""
COPY = "void {}(T* to, const T* from, bool present) {{ begin_copy(to, from, {}, present); }}\n"
REPLACED = {  # what only a GPU understands
    r"__device__ void copy_async\(.*?\n}\n": COPY.format("copy_async", "sizeof(T)"),
    r"__device__ void copy_async4\(.*?\n}\n": COPY.format("copy_async4", "4 * sizeof(T)"),
    r'asm volatile\("cp.async.commit_group;".*?\);': "commit_copies();",
    r'asm volatile\("cp.async.wait_group (\d+);".*?\);': r"wait_copies(\1);",
    r'asm volatile\("cp.async.wait_group %0;" :: "n"\((\w+)\).*?\);': r"wait_copies(\1);",
}


@cache
def built(kernel: CppKernel, folder: Path) -> ctypes.CDLL:
    """Return a kernel as a library for this CPU."""
    text = kernel.text
    for pattern, made in REPLACED.items():
        text = re.sub(pattern, made, text, flags=re.S)
    assert "asm" not in text
    fields = re.search(rf"void {kernel.name}\(\s*(.*?)\)", text, re.S)[1].split(",")
    names = [re.search(r"\w+$", field)[0] for field in fields]
    call = f"{kernel.name}({', '.join(f'p->{name}' for name in names)})"
    parameters = f"struct Parameters {{ {';'.join(fields)}; }};"
    text = HEAD + text + parameters + TAIL.replace("KERNEL", call)
    source = folder / f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.cpp"
    source.write_text(text)
    options = ["-std=c++17", "-O1", "-w", "-shared", "-fPIC"]
    subprocess.run(["g++", *options, source, "-o", source.with_suffix(".so")], check=True)
    return ctypes.CDLL(str(source.with_suffix(".so")))


def launcher(folder: Path) -> Any:
    """Return what stands in for `cuda_cpp.launch`; libraries are built in `folder`."""

    def launch(kernel: CppKernel, grid: tuple, block: tuple, *arguments: Any) -> None:
        if withheld.withhold(kernel, grid, block, arguments, {}):
            return
        values = [
            ctypes.c_void_p(x.data_ptr())
            if hasattr(x, "data_ptr")
            else np.ctypeslib.as_ctypes_type(x.dtype)(x.item())
            for x in arguments
        ]
        fields = [(f"_{number}", type(value)) for number, value in enumerate(values)]
        parameters = type("Parameters", (ctypes.Structure,), {"_fields_": fields})(*values)
        sizes = (ctypes.c_uint * 5)(*(*grid, 1, 1)[:3], *block)
        built(kernel, folder).run(ctypes.byref(parameters), sizes)

    return launch
