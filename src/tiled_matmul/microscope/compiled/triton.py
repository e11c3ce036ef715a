"""What Triton's compiler makes of a kernel, for any GPU and without one: TTGIR, PTX, SASS, counts.

A kernel is compiled as by a launch with the same arguments: the compiler knows which pointers are
aligned to 16 bytes, and which integers are multiples of 16 or 1. If Triton's interpreter is
switched on, as it is without a GPU, a separate process compiles.

TTGIR is Triton's intermediate language after the choice of layouts, shared memory and pipelines;
PTX is the input of NVIDIA's assembler, SASS is the machine code. Triton includes that assembler,
which supports compute capabilities from 7.5 to 12.0 on any machine.
"""

from __future__ import annotations

import dataclasses
import io
import linecache
import os
import pickle
import re
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from tiled_matmul.machine import backend
from tiled_matmul.microscope.compiled.cuda import (
    INSTRUCTION,
    REFERENCE,
    TIMEOUT_S,
    NoCompiler,
    cuobjdump,
    elsewhere,
    find_tool,
)
from tiled_matmul.microscope.written import function_of

Target = tuple[int, int] | str  # a compute capability such as (9, 0), or AMD's "gfx942"

PATTERNS = {
    "mma.sync": r"mma\.sync\.",
    "wgmma": r"wgmma\.mma_async\.",
    "tcgen05.mma": r"tcgen05\.mma\.",
    "mfma": r"v_mfma_",
    "ldmatrix": r"ldmatrix\.",
    "cp.async": r"cp\.async\.c[ag]\.",
    "TMA loads": r"cp\.async\.bulk\.tensor\.\w+\.shared::",
    "TMA stores": r"cp\.async\.bulk\.tensor\.\w+\.global\.",
    "FMAs": r"(?:fma\.rn\.|v_(?:pk_)?fma_)",
    "warp specialisation": r"ttg\.warp_specialize\(",
}
"""Kinds of instructions, as patterns in the PTX (AMD: the assembly); the last one is for TTGIR."""

GLOBAL_ACCESS = re.compile(r"\b(ld|st)\.global(?:\.[a-zA-Z][\w:]*)*?(?:\.v(\d))?\.[bfsu](\d+)")
ASYNC_COPY = re.compile(r"cp\.async\.c[ag]\.shared\.global\S* \[[^]]*\], \[[^]]*\], (\w+)")

TENSOR_CORES = ("mma.sync", "wgmma", "tcgen05.mma", "mfma")
NOTICE = r"tl\.make_block_ptr is deprecated"

_known: dict[tuple, TileCode] = {}  # by function, arguments and target


class NotCompiled(RuntimeError):
    """Triton's compiler rejects the kernel; the message is the compiler's."""


@dataclass(frozen=True)
class TileCode:
    """One kernel, compiled for one GPU with one set of arguments.

    `ttgir`, `assembly` (PTX, or AMD's assembly) and `sass` are texts; `sass` is None without
    `cuobjdump` and for AMD. `registers` and `spilled_bytes` (in local memory, for lack of
    registers) are those of a thread, `shared_bytes` those of a program.
    """

    name: str
    cc: Target
    num_warps: int
    registers: int
    spilled_bytes: int
    shared_bytes: int
    ttgir: str = field(repr=False)
    assembly: str = field(repr=False)
    sass: str | None = field(repr=False)

    @property
    def ptx(self) -> str:
        """The PTX. Raises ValueError for an AMD GPU, whose code is in `assembly`."""
        if isinstance(self.cc, str):
            raise ValueError(f"{self.cc} has no PTX; look at assembly")
        return self.assembly

    def count(self, kind: str) -> int:
        """Return how many instructions of one of PATTERNS the code contains; loops count once.

        "tensor cores" counts all instructions that multiply matrices. Raises ValueError for an
        unknown kind.
        """
        if kind == "tensor cores":
            return sum(self.count(each) for each in TENSOR_CORES)
        if kind not in PATTERNS:
            raise ValueError(f"no {kind!r}; count tensor cores, {', '.join(PATTERNS)}")
        text = self.ttgir if kind == "warp specialisation" else self.assembly
        return len(re.findall(rf"(?<![\w.]){PATTERNS[kind]}", text))

    @property
    def features(self) -> dict[str, int]:
        """The count of each of PATTERNS that occurs in the code."""
        counts = {kind: self.count(kind) for kind in PATTERNS}
        return {kind: count for kind, count in counts.items() if count}

    @property
    def widths(self) -> dict[str, Counter]:
        """The counts of a thread's accesses to global memory by bytes: {"loads": {16: 8, 2: 1}, …}.

        "copies" are asynchronous copies into shared memory, `cp.async`; loops count once.
        """
        counts: dict[str, Counter] = {"loads": Counter(), "copies": Counter(), "stores": Counter()}
        for op, fours, bits in GLOBAL_ACCESS.findall(self.ptx):
            kind = "loads" if op == "ld" else "stores"
            counts[kind][int(fours or 1) * int(bits) // 8] += 1
        counts["copies"].update(int(size, 0) for size in ASYNC_COPY.findall(self.ptx))
        return counts

    @property
    def instructions(self) -> Counter:
        """The count of each instruction in the SASS. Raises NoCompiler without `cuobjdump`."""
        if self.sass is None:
            raise NoCompiler(f"the instructions of {self.name} are not known: no cuobjdump is here")
        return Counter(match[2] for match in INSTRUCTION.finditer(self.sass))


def tile_code(kernel: Any, *arguments: Any, cc: Target = REFERENCE, **options: Any) -> TileCode:
    """Return the code of a Triton kernel for a launch with these arguments and options.

    `arguments` are those of a launch: tensors (on any device, or "meta"), tensor descriptors,
    numbers; `options` are its keywords: constants, num_warps, num_stages. `cc` is a compute
    capability, or an AMD GPU's name. Raises NotCompiled with the compiler's message.
    """
    name = function_of(kernel).__name__
    return tile_codes({name: (kernel, arguments, options)}, cc)[name]


def tile_codes(jobs: Mapping[str, tuple], cc: Target = REFERENCE) -> dict[str, TileCode]:
    """Compile several kernels, in one process, and return {name: TileCode}.

    `jobs` maps a name to (kernel, arguments, options), or to (kernel, arguments, options, target)
    if its target is not `cc`. Raises NotCompiled for the first rejected kernel, after all were
    tried.
    """
    full = {name: (*job, cc)[:4] for name, job in jobs.items()}
    dumped, keys = {}, {}
    for name, (kernel, arguments, options, target) in full.items():
        function = function_of(kernel)
        job = _untuned(kernel), [_like(x) for x in arguments], options, target
        dumped[name] = _dumped(job)
        keys[name] = function, dumped[name]
    new = {name: dumped[name] for name in full if keys[name] not in _known}
    if new:
        if backend.select().name == "simulator":
            made = elsewhere(__name__, pickle.dumps(new))
        else:
            made = _compile_all(new)
        failed = {name: text for name, text in made.items() if isinstance(text, str)}
        for name, code in made.items():
            if name not in failed:
                _known[keys[name]] = code
        if failed:
            name, text = next(iter(failed.items()))
            raise NotCompiled(f"{name} for {_target_name(full[name][3])}: {text}")
    return {name: dataclasses.replace(_known[key], name=name) for name, key in keys.items()}


def _untuned(kernel: Any) -> Any:
    """Return the kernel under the decorators `autotune` and `heuristics`."""
    while hasattr(kernel.fn, "fn"):
        kernel = kernel.fn
    return kernel


# The compiler's input


@dataclass(frozen=True)
class Pointer:
    """The properties of a tensor on which compilation depends."""

    dtype: Any
    address: int  # modulo 16

    def data_ptr(self) -> int:
        return self.address


def _like(argument: Any) -> Any:
    """Return a stand-in for a tensor or a descriptor, and any other argument unchanged."""
    if hasattr(argument, "block_shape"):
        return dataclasses.replace(argument, base=Pointer(argument.base.dtype, 0))
    if hasattr(argument, "data_ptr"):
        return Pointer(argument.dtype, argument.data_ptr() % 16)
    return argument


def _dumped(job: tuple) -> bytes:
    buffer = io.BytesIO()
    _pickler()(buffer).dump(job)
    return buffer.getvalue()


def _pickler() -> type:
    """Return a pickler that includes kernels, by name if they can be imported, else by source."""
    from numba import cloudpickle
    from triton.runtime.interpreter import InterpretedFunction
    from triton.runtime.jit import JITFunction

    class Pickler(cloudpickle.Pickler):
        def reducer_override(self, thing: Any) -> Any:
            if not isinstance(thing, InterpretedFunction | JITFunction):
                return super().reducer_override(thing)
            function = thing.fn
            module, name = function.__module__, function.__name__
            if module != "__main__" and getattr(sys.modules.get(module), name, None) is thing:
                return _imported, (module, name)
            file = function.__code__.co_filename
            return _jitted, (function, file, linecache.getlines(file, function.__globals__))

    return Pickler


def _imported(module: str, name: str) -> Any:
    from importlib import import_module

    return getattr(import_module(module), name)


def _jitted(function: Any, file: str, lines: list[str]) -> Any:
    """Return the kernel of a function whose file this process may not have."""
    from triton.runtime.jit import JITFunction

    linecache.cache[file] = len(lines), None, lines, file
    return JITFunction(function)


# Compiling


def main() -> None:
    """Compile the jobs on the standard input and write the results for `elsewhere`."""
    backend.select()
    jobs = pickle.load(sys.stdin.buffer)
    sys.stdout.buffer.write(pickle.dumps(_compile_all(jobs)))


def _compile_all(jobs: Mapping[str, bytes]) -> dict[str, TileCode | str]:
    """Return each kernel's code, or for a rejected kernel the compiler's message."""
    return {name: _compile(name, job) for name, job in jobs.items()}


def _compile(name: str, job: bytes) -> TileCode | str:
    kernel, arguments, options, cc = pickle.loads(job)
    errors: list[str] = []
    try:
        with _errors_of_passes(errors):
            made, _ = build(kernel, arguments, options, cc)
    except Exception as error:  # of the compiler, or of Python for a wrong argument
        return "; ".join([f"{type(error).__name__}: {error}", *errors])
    code = partial(
        TileCode,
        name=name,
        cc=cc,
        num_warps=made.metadata.num_warps,
        shared_bytes=made.metadata.shared,
        ttgir=made.asm["ttgir"],
    )
    if isinstance(cc, str):
        text = made.asm["amdgcn"]
        used = {key: int(n) for key, n in re.findall(r"\.(vgpr_\w+):\s+(\d+)", text)}
        spilled = 4 * used["vgpr_spill_count"]
        return code(assembly=text, sass=None, registers=used["vgpr_count"], spilled_bytes=spilled)
    ptx = made.asm["ptx"]
    try:
        usage, listing = cuobjdump(made.asm["cubin"], find_tool("cuobjdump"))
    except NoCompiler:
        registers, spilled = _assembled(ptx, _number(cc))
        return code(assembly=ptx, sass=None, registers=registers, spilled_bytes=spilled)
    usages = re.findall(r"REG:(\d+) STACK:(\d+) SHARED:\d+ LOCAL:(\d+)", usage)
    registers, stack, local = (max(map(int, each)) for each in zip(*usages, strict=True))
    # On 12.0 the assembler may store zeros on the stack that are never read, which is no spill.
    spilled = stack + local if re.search(r"\bLDL\b", listing) else 0
    return code(assembly=ptx, sass=_legible(listing), registers=registers, spilled_bytes=spilled)


def build(kernel: Any, arguments: list, options: dict, cc: Target) -> tuple[Any, dict[str, str]]:
    """Compile as `JITFunction.run` does, but for any GPU.

    `arguments` are those of a launch, or stand-ins with a `dtype` and a `data_ptr()`; `options` are
    its keywords. Returns (Triton's compiled kernel, the type of each parameter, which is
    "constexpr" for one that is not passed). Exceptions of the compiler pass through.
    """
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource, make_backend
    from triton.runtime.jit import JITFunction, create_function_from_signature

    from tiled_matmul.microscope.triton.block_pointers import supply

    supply()  # the process that compiles for another one has imported nothing else
    if not isinstance(kernel, JITFunction):
        kernel = JITFunction(kernel.fn)
    if getattr(kernel, "is_gluon", bool)():
        from triton.experimental.gluon._runtime import GluonASTSource as ASTSource  # noqa: N814
    target = GPUTarget("hip", cc, 64) if isinstance(cc, str) else GPUTarget("cuda", _number(cc), 32)
    compiler = make_backend(target)
    bind = create_function_from_signature(kernel.signature, kernel.params, compiler)
    bound, specialization, rest = bind(*arguments, **options)
    launch_options, signature, constants, attributes = kernel._pack_args(
        compiler, dict(options), bound, specialization, rest
    )
    source = ASTSource(kernel, signature, constants, attributes)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=NOTICE)
        return triton.compile(source, target=target, options=launch_options.__dict__), signature


@contextmanager
def _errors_of_passes(errors: list[str]) -> Iterator[None]:
    """Append the errors that the compiler's passes write to the process's standard error.

    The dump of the whole module, which accompanies them, is dropped.
    """
    sys.stderr.flush()
    before = os.dup(2)
    with tempfile.TemporaryFile() as written:
        os.dup2(written.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(before, 2)
            os.close(before)
            written.seek(0)
            text = written.read().decode(errors="replace")
            errors += re.findall(r"^[^\n]*?: error: ([^\n]+)", text, re.MULTILINE)


def _assembled(ptx: str, capability: int) -> tuple[int, int]:
    """Return (registers, spilled bytes) as Triton's assembler reports them."""
    from triton.backends.nvidia.compiler import get_ptxas

    architecture = re.search(r"^\.target (\w+)", ptx, re.MULTILINE)[1]
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "kernel.ptx"
        source.write_text(ptx)
        command = [get_ptxas(capability).path, "-v", f"-arch={architecture}", str(source)]
        command += ["-o", str(source.with_suffix(".cubin"))]
        report = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S).stderr
    pattern = r"(\d+) bytes stack frame, \d+ bytes spill stores, (\d+) bytes spill loads"
    stack, registers = re.search(pattern, report), re.search(r"Used (\d+) registers", report)
    if stack is None or registers is None:
        raise NoCompiler(f"ptxas reports no registers: {report.strip()}")
    return int(registers[1]), int(stack[1]) if int(stack[2]) else 0


def _legible(listing: str) -> str:
    """Return a listing of cuobjdump without the encoded instructions."""
    lines = (re.sub(r"\s*/\* 0x[0-9a-f]+ \*/", "", line) for line in listing.splitlines())
    return "\n".join(line.strip() for line in lines if line.strip())


def _number(cc: tuple[int, int]) -> int:
    return 10 * cc[0] + cc[1]


def _target_name(cc: Target) -> str:
    return cc if isinstance(cc, str) else "compute capability {}.{}".format(*cc)
