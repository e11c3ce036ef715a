"""What Triton's compiler makes of a kernel, for any GPU and without one: TTGIR, PTX, SASS, counts.

A kernel is compiled as a launch with the same arguments would have it compiled: pointers that begin
on 16 bytes, integers that 16 divides and integers that are 1 are told to the compiler. Where
Triton's interpreter is switched on, as it is without a GPU, another process does the work.

TTGIR is Triton's own language, after layouts, shared memory and pipelines were chosen; PTX is what
NVIDIA's assembler gets, SASS what the GPU runs. Triton brings that assembler, and with it come
compute capabilities from 7.5 to 12.0, whatever the GPU here.
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
"""Kinds of instructions: patterns for the PTX (AMD: the assembly), the last one for the TTGIR."""

GLOBAL_ACCESS = re.compile(r"\b(ld|st)\.global(?:\.[a-zA-Z][\w:]*)*?(?:\.v(\d))?\.[bfsu](\d+)")
ASYNC_COPY = re.compile(r"cp\.async\.c[ag]\.shared\.global\S* \[[^]]*\], \[[^]]*\], (\w+)")

TENSOR_CORES = ("mma.sync", "wgmma", "tcgen05.mma", "mfma")
NOTICE = r"tl\.make_block_ptr is deprecated"

_known: dict[tuple, TileCode] = {}  # by function, arguments and target


class NotCompiled(RuntimeError):
    """Triton's compiler does not take the kernel; the message is its own."""


@dataclass(frozen=True)
class TileCode:
    """One kernel, compiled for one GPU with one set of arguments.

    `ttgir`, `assembly` (PTX, on AMD theirs) and `sass` are texts; `sass` is None where there is no
    `cuobjdump`, and on AMD. `registers` are a thread's, and `spilled_bytes` what lies in local
    memory because there was no register for it; `shared_bytes` are a program's.
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
        """NVIDIA's assembly. Raises ValueError for an AMD GPU's code, which is `assembly`."""
        if isinstance(self.cc, str):
            raise ValueError(f"{self.cc} has no PTX; look at assembly")
        return self.assembly

    def count(self, kind: str) -> int:
        """Return how often an instruction of one of PATTERNS is in the code, loops counted once.

        "tensor cores" counts all instructions that multiply matrices. Raises ValueError for another
        kind.
        """
        if kind == "tensor cores":
            return sum(self.count(each) for each in TENSOR_CORES)
        if kind not in PATTERNS:
            raise ValueError(f"no {kind!r}; count tensor cores, {', '.join(PATTERNS)}")
        text = self.ttgir if kind == "warp specialisation" else self.assembly
        return len(re.findall(rf"(?<![\w.]){PATTERNS[kind]}", text))

    @property
    def features(self) -> dict[str, int]:
        """How often each of PATTERNS stands in the code, those that do."""
        counts = {kind: self.count(kind) for kind in PATTERNS}
        return {kind: count for kind, count in counts.items() if count}

    @property
    def widths(self) -> dict[str, Counter]:
        """How many bytes a thread's accesses to global memory move: {"loads": {16: 8, 2: 1}, …}.

        "copies" are loads that go into shared memory by themselves, `cp.async`; loops count once.
        """
        counts: dict[str, Counter] = {"loads": Counter(), "copies": Counter(), "stores": Counter()}
        for op, fours, bits in GLOBAL_ACCESS.findall(self.ptx):
            kind = "loads" if op == "ld" else "stores"
            counts[kind][int(fours or 1) * int(bits) // 8] += 1
        counts["copies"].update(int(size, 0) for size in ASYNC_COPY.findall(self.ptx))
        return counts

    @property
    def instructions(self) -> Counter:
        """How often each instruction stands in the SASS. Raises NoCompiler where there is none."""
        if self.sass is None:
            raise NoCompiler(f"the instructions of {self.name} are not known: no cuobjdump is here")
        return Counter(found[2] for found in INSTRUCTION.finditer(self.sass))


def tile_code(kernel: Any, *arguments: Any, cc: Target = REFERENCE, **options: Any) -> TileCode:
    """Return what the compiler makes of a Triton kernel launched with these arguments and options.

    `arguments` are a launch's: tensors (on "meta" or anywhere else), tensor descriptors, numbers;
    `options` are its keywords: constants, num_warps, num_stages. `cc` is a compute capability, or
    an AMD GPU's name. Raises NotCompiled with the compiler's message.
    """
    name = function_of(kernel).__name__
    return tile_codes({name: (kernel, arguments, options)}, cc)[name]


def tile_codes(jobs: Mapping[str, tuple], cc: Target = REFERENCE) -> dict[str, TileCode]:
    """Compile several kernels, in one process, and return {name: TileCode}.

    `jobs` maps a name to (kernel, arguments, options), and to (…, cc) where the target is not `cc`.
    Raises NotCompiled, naming the first kernel that is not taken, after all were tried.
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
    """Return the kernel within `autotune` and `heuristics`."""
    while hasattr(kernel.fn, "fn"):
        kernel = kernel.fn
    return kernel


# What goes to the compiler


@dataclass(frozen=True)
class Pointer:
    """All that a launch's compilation asks of a tensor."""

    dtype: Any
    address: int  # modulo 16

    def data_ptr(self) -> int:
        return self.address


def _like(argument: Any) -> Any:
    """Return a stand-in for a tensor or a descriptor; anything else is itself."""
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
    """Return a pickler that takes kernels along: by name where they have one, or by source."""
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
    """Compile what stands on the standard input; what comes out is for `elsewhere`."""
    backend.select()
    jobs = pickle.load(sys.stdin.buffer)
    sys.stdout.buffer.write(pickle.dumps(_compile_all(jobs)))


def _compile_all(jobs: Mapping[str, bytes]) -> dict[str, TileCode | str]:
    """Return each kernel's code, or what the compiler said of a kernel that it does not take."""
    return {name: _compile(name, job) for name, job in jobs.items()}


def _compile(name: str, job: bytes) -> TileCode | str:
    kernel, arguments, options, cc = pickle.loads(job)
    errors: list[str] = []
    try:
        with _said_by_passes(errors):
            made, _ = build(kernel, arguments, options, cc)
    except Exception as error:  # the compiler's own kinds, and those of Python for a wrong argument
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
    # On 12.0 the assembler may store zeros to a place on the stack that nobody reads: no spill.
    spilled = stack + local if re.search(r"\bLDL\b", listing) else 0
    return code(assembly=ptx, sass=_legible(listing), registers=registers, spilled_bytes=spilled)


def build(kernel: Any, arguments: list, options: dict, cc: Target) -> tuple[Any, dict[str, str]]:
    """Compile as `JITFunction.run` does, but for a GPU that need not be here.

    `arguments` are a launch's, or stand-ins with a `dtype` and a `data_ptr()`; `options` its
    keywords. Returns (what Triton made, the type of each parameter: "constexpr" are not passed).
    What the compiler raises passes through.
    """
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource, make_backend
    from triton.runtime.jit import JITFunction, create_function_from_signature

    if not isinstance(kernel, JITFunction):
        kernel = JITFunction(kernel.fn)
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
def _said_by_passes(errors: list[str]) -> Iterator[None]:
    """Append the errors that the compiler's passes write to the process's standard error.

    They come with a dump of the whole module, which nobody sees.
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
    """Return (registers, spilled bytes) that Triton's assembler tells."""
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
        raise NoCompiler(f"ptxas tells no registers: {report.strip()}")
    return int(registers[1]), int(stack[1]) if int(stack[2]) else 0


def _legible(listing: str) -> str:
    """Return a listing of cuobjdump's without the instructions' bits."""
    lines = (re.sub(r"\s*/\* 0x[0-9a-f]+ \*/", "", line) for line in listing.splitlines())
    return "\n".join(line.strip() for line in lines if line.strip())


def _number(cc: tuple[int, int]) -> int:
    return 10 * cc[0] + cc[1]


def _target_name(cc: Target) -> str:
    return cc if isinstance(cc, str) else "compute capability {}.{}".format(*cc)
