"""Compile a Numba kernel and report its registers, spills and machine instructions (SASS).

A kernel is compiled and linked as for a launch, and NVIDIA's `cuobjdump` disassembles the result.
No GPU is needed. Without one, this process runs kernels in the interpreter, so a separate process
compiles. This needs libNVVM, libnvJitLink or `ptxas` in its place, and `cuobjdump`.
`numba-cuda[cu13]` includes the libraries, Triton includes `cuobjdump`, a CUDA toolkit includes all
of them. On a GPU without these, registers and bytes come from Numba, and instructions are not
counted.
"""

from __future__ import annotations

import io
import os
import pickle
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from tiled_matmul.machine import backend
from tiled_matmul.microscope.compiled.kept import kept

REFERENCE = (9, 0)  # the book's GPU
OPTIONS = ("fastmath", "launch_bounds")  # options of cuda.jit for the compiler, not the linker
TOOLKIT = Path("/usr/local/cuda/bin")
TIMEOUT_S = 300
SYSTEM_SHARED = 1024  # bytes of the system, which cuobjdump includes from 9.0 on

OPCODES = {
    "multiply-adds": r"[FDH]FMA",
    "shared loads": r"LDS(?!M)",
    "shared loads of 16 bytes": r"LDS\.(U\.)?128",
    "shared stores": r"STS",
    "global loads": r"LDG(\.|$)",
    "global loads of 16 bytes": r"LDG\.E\.(\w+\.)*128",
    "global stores": r"STG",
    "asynchronous copies": r"LDGSTS",
    "spill loads and stores": r"(LDL|STL)",
    "barriers": r"BAR\.",
    "integer": r"(U?(IADD|IMAD|IMNMX|IABS|ISETP|LEA|SHF|LOP|SEL|POPC|FLO|BMSK|SGXT|PRMT)|VIADD)",
}
"""Kinds of instructions, each with a pattern for the start of a name. Kinds may overlap."""

_known: dict[tuple, Any] = {}  # by kernel, signature and compute capability


class NoCompiler(RuntimeError):
    """A tool or library for compiling is missing on this machine; the message names it."""


@dataclass(frozen=True)
class Compiled:
    """One kernel, compiled for one compute capability.

    `registers` and `spilled_bytes` (of local memory: what has no register, and arrays whose index
    the compiler does not know) are those of a thread, `shared_bytes` those of a block. `whole`
    counts all instructions by name; `inner` those of one iteration of the innermost loop with the
    most multiply-adds; `around` those of one iteration of the loops around it, without `inner`;
    `loop` holds the instructions of `inner` in their order. All four are empty without `cuobjdump`.
    `same_bank` counts the multiply-adds of `inner` that read three operands from one of the two
    banks of the register file, and therefore wait (compute capability 7.0 and later).
    """

    name: str
    cc: tuple[int, int]
    registers: int
    spilled_bytes: int
    shared_bytes: int
    whole: Counter = field(default_factory=Counter, repr=False)
    inner: Counter = field(default_factory=Counter, repr=False)
    around: Counter = field(default_factory=Counter, repr=False)
    same_bank: int = field(default=0, repr=False)
    loop: tuple[str, ...] = field(default=(), repr=False)

    def examples(self, kind: str, most: int = 1) -> list[str]:
        """Return the first `most` instructions of one of OPCODES in the inner loop, as text.

        Raises ValueError for another kind, and NoCompiler without `cuobjdump`.
        """
        self.count(kind)
        return [line for line in self.loop if re.match(OPCODES[kind], line)][:most]

    def count(self, kind: str, where: str = "inner") -> int:
        """Return the number of instructions of one of OPCODES in "inner", "around" or "whole".

        Raises ValueError for another kind or place, and NoCompiler without `cuobjdump`.
        """
        if kind not in OPCODES or where not in ("inner", "around", "whole"):
            known = ", ".join(OPCODES)
            raise ValueError(f"no {kind!r} in {where!r}; count {known} in inner, around or whole")
        self._need_instructions()
        instructions = getattr(self, where)
        return sum(n for name, n in instructions.items() if re.match(OPCODES[kind], name))

    def slots(self, products: int, kind: str | None = None) -> float:
        """Return how many instructions a thread issues for each multiply-add.

        `products` is the number of multiply-adds in one iteration of the outer loop. It gives the
        number of the inner loop's iterations, even if the compiler unrolled that. `kind` restricts
        the count to one of OPCODES. Raises ValueError if the inner loop has no multiply-add of
        floats.
        """
        each = self.count("multiply-adds")
        if not each:
            raise ValueError(f"{self.name} has no loop with a multiply-add of floats")
        if kind is None:
            inner, around = self.inner.total(), self.around.total()
        else:
            inner, around = self.count(kind), self.count(kind, "around")
        return (around + inner * products / each) / products

    def _need_instructions(self) -> None:
        if not self.whole:
            raise NoCompiler(f"the instructions of {self.name} are not known: no cuobjdump is here")


def compiled(kernel: Any, *arguments: Any, cc: tuple[int, int] | None = None) -> Compiled:
    """Return the compiled `kernel` for these arguments; details are as in `compiled_all`."""
    return compiled_all({kernel.py_func.__name__: (kernel, *arguments)}, cc)[
        kernel.py_func.__name__
    ]


def try_compiled(
    kernels: Mapping[str, tuple], cc: tuple[int, int] | None = None
) -> dict[str, Compiled]:
    """Return the result of `compiled_all`, or print why it is not available and return {}."""
    try:
        by_name = compiled_all(kernels, cc)
        for made in by_name.values():
            made._need_instructions()
        return by_name
    except NoCompiler as error:
        print(f"Nothing is compiled here: {error}")
        return {}


def compiled_all(
    kernels: Mapping[str, tuple], cc: tuple[int, int] | None = None
) -> dict[str, Compiled]:
    """Compile several kernels, in one process, and return {name: Compiled}.

    `kernels` maps a name to (kernel, argument, …): a kernel of `cuda.jit`, and for each argument a
    tensor, an array, a number or a Numba type. `cc` is a compute capability such as (9, 0); None
    stands for this machine's GPU, or without one for the reference GPU. Raises NoCompiler, and the
    compiler's exception for a kernel that it rejects.
    """
    chosen = backend.select()
    target = cc or (chosen.gpu.capability if chosen.on_gpu else REFERENCE)
    jobs = {name: (kernel, _signature(rest)) for name, (kernel, *rest) in kernels.items()}
    keys = {name: (*job, target) for name, job in jobs.items()}
    new = {name: job for name, job in jobs.items() if keys[name] not in _known}
    if new:
        try:
            tool = find_tool("cuobjdump")
            cubins = (_elsewhere if chosen.name == "simulator" else _here)(new, target)
            made = {
                name: read(name, target, *cuobjdump(cubin, tool)) for name, cubin in cubins.items()
            }
        except NoCompiler:
            if not chosen.on_gpu or target != chosen.gpu.capability:
                raise
            made = {name: _as_launched(name, *job, target) for name, job in new.items()}
        _known.update({keys[name]: found for name, found in made.items()})
    return {name: replace(_known[key], name=name) for name, key in keys.items()}


def find_tool(name: str) -> str:
    """Return the path of one of NVIDIA's programs. Raises NoCompiler."""
    return _tools(name)[0]


def _tools(name: str) -> list[str]:
    """Return the paths of a program on this machine. Raises NoCompiler if there is none."""
    if places := _places(name):
        return places
    raise NoCompiler(f"{name} is not here; it comes with a CUDA toolkit, and with Triton")


def _places(name: str) -> list[str]:
    """Return the paths of a program in PATH, in the toolkit's folder and in Triton's."""
    places = [shutil.which(name), TOOLKIT / name]
    if os.environ.get("CUDA_HOME"):
        places.insert(1, Path(os.environ["CUDA_HOME"]) / "bin" / name)
    for folder in map(Path, sys.path):
        places += sorted((folder / "triton/backends/nvidia/bin").glob(f"{name}*"))
    return [str(place) for place in places if place and os.access(place, os.X_OK)]


def _signature(arguments: list) -> tuple:
    """Return the Numba types of the arguments, for tensors those that launchers pass."""
    import numpy as np
    from numba import from_dtype, typeof, types

    kinds = []
    for argument in arguments:
        if hasattr(argument, "data_ptr"):  # a tensor on any device
            dtype = np.dtype(str(argument.dtype).removeprefix("torch."))
            argument = types.Array(from_dtype(dtype), argument.ndim, "C")
        kinds.append(argument if isinstance(argument, types.Type) else typeof(argument))
    return tuple(kinds)


# Compiling


def _here(jobs: Mapping[str, tuple], cc: tuple[int, int]) -> dict[str, bytes]:
    """Compile in this process, whose Numba has a compiler."""
    return {name: cubin(kernel, signature, cc) for name, (kernel, signature) in jobs.items()}


def cubin(kernel: Any, signature: tuple, cc: tuple[int, int], source_lines: bool = False) -> bytes:
    """Return a kernel's machine code from Numba's compiler.

    `signature` holds the Numba types of the arguments, `cc` is a compute capability. With
    `source_lines` the code also names the source line of each instruction, for other tools; the
    instructions are the same. Raises NoCompiler, or the compiler's exception.
    """
    from numba import cuda

    options = {o: v for o, v in kernel.targetoptions.items() if o in OPTIONS and v is not None}
    most = kernel.targetoptions.get("max_registers")
    build = partial(
        cuda.compile,
        kernel.py_func,
        signature,
        device=False,
        abi="numba",
        cc=cc,
        lineinfo=source_lines,
        **options,
    )
    try:
        from cuda.bindings import nvjitlink

        nvjitlink.version()
    except Exception:  # the package or its library is missing; the type varies between versions
        return _assembled(_compile(build, "ptx"), cc, most, source_lines)
    code = _compile(build, "ltoir")
    flags = ["-lto", f"-arch=sm_{cc[0]}{cc[1]}"] + ([f"-maxrregcount={most}"] if most else [])
    flags += ["-lineinfo"] if source_lines else []
    linker = nvjitlink.create(len(flags), flags)
    try:
        nvjitlink.add_data(linker, nvjitlink.InputType.LTOIR, code, len(code), "kernel")
        nvjitlink.complete(linker)
        linked = bytearray(nvjitlink.get_linked_cubin_size(linker))
        nvjitlink.get_linked_cubin(linker, linked)
    finally:
        nvjitlink.destroy(linker)
    return bytes(linked)


def _compile(build: Any, output: str) -> Any:
    try:
        return build(output=output)[0]
    except Exception as error:
        if "nvvm" in str(error).lower() and "not" in str(error).lower():
            raise NoCompiler(f"libNVVM is not here, numba-cuda[cu13] brings it: {error}") from error
        raise


def _assembled(ptx: str, cc: tuple[int, int], most: int | None, source_lines: bool) -> bytes:
    """Return the cubin from the first `ptxas` that supports this version of PTX."""
    error = ""
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "kernel.ptx", Path(folder) / "kernel.cubin"
        source.write_text(ptx)
        for tool in _tools("ptxas"):
            command = [tool, f"-arch=sm_{cc[0]}{cc[1]}", str(source), "-o", str(target)]
            command += [f"-maxrregcount={most}"] if most else []
            command += ["-lineinfo"] if source_lines else []
            done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S)
            if done.returncode == 0:
                return target.read_bytes()
            error = done.stderr.strip()
    raise NoCompiler(f"no ptxas here takes what Numba makes: {error}")


def _elsewhere(jobs: Mapping[str, tuple], cc: tuple[int, int]) -> dict[str, bytes]:
    """Compile in a separate process, where Numba's compiler is switched on."""
    buffer = io.BytesIO()
    _pickler()(buffer).dump((dict(jobs), cc))
    result = elsewhere(__name__, buffer.getvalue())
    if isinstance(result, BaseException):
        raise result
    return result


def elsewhere(module: str, given: bytes) -> Any:
    """Run a module's `main()` in a process whose back end is the compiler; return its result.

    `main()` reads `given`, a pickle, from its standard input and pickles its result to its standard
    output. The result is kept as `kept` says. Raises RuntimeError, with the end of its standard
    error, if it fails.
    """
    environment = os.environ | {
        backend.OVERRIDE: "compiler",
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
    }

    def answer() -> Any:
        done = subprocess.run(
            [sys.executable, "-c", f"from {module} import main; main()"],
            input=given,
            capture_output=True,
            env=environment,
            timeout=TIMEOUT_S,
        )
        if done.returncode:
            raise RuntimeError(f"the compiler's process failed: {done.stderr.decode()[-2000:]}")
        return pickle.loads(done.stdout)

    return kept(pickle.dumps((module, given)), tools(), answer)


def tools() -> list[str]:
    """Return the paths of NVIDIA's programs on this machine, the first choice first."""
    return [path for name in ("cuobjdump", "nvdisasm", "ptxas") for path in _places(name)]


def _pickler() -> type:
    """Return a pickler that includes the interpreter's kernels as their source functions."""
    from numba import cloudpickle

    from tiled_matmul.microscope.cuda.kernel import Kernel

    class Pickler(cloudpickle.Pickler):
        def reducer_override(self, thing: Any) -> Any:
            if isinstance(thing, Kernel):
                return _jitted, (thing.py_func, thing.device, thing.targetoptions)
            if type(thing).__name__ == "FakeCUDAKernel":  # of Numba's own simulator
                return _jitted, (thing.fn, thing._device, {"fastmath": thing._fastmath})
            home = sys.modules.get(getattr(thing, "__module__", None))
            name = getattr(thing, "__name__", None)
            if type(thing).__name__ == "_Intrinsic" and getattr(home, str(name), None) is thing:
                return getattr, (home, name)
            return super().reducer_override(thing)

    return Pickler


def _jitted(function: Any, device: bool, options: dict) -> Any:
    from numba import cuda

    return cuda.jit(device=device, **options)(function)


def main() -> None:
    """Compile the jobs on the standard input and write the result for `_elsewhere`."""
    backend.select()
    jobs, cc = pickle.load(sys.stdin.buffer)
    try:
        result: Any = _here(jobs, cc)
    except NoCompiler as error:
        result = error
    except Exception as error:  # Numba rejects a kernel: its objects may not be picklable
        result = RuntimeError(f"{type(error).__name__}: {error}")
    sys.stdout.buffer.write(pickle.dumps(result))


# Reading


def _as_launched(name: str, kernel: Any, signature: tuple, cc: tuple[int, int]) -> Compiled:
    """Return Numba's own facts about a kernel that it compiled for this machine's GPU."""
    kernel.compile(signature)
    made = kernel.overloads[signature]
    local, shared = made.local_mem_per_thread, made.shared_mem_per_block
    return Compiled(name, cc, made.regs_per_thread, local, shared)


def cuobjdump(cubin: bytes, tool: str) -> tuple[str, str]:
    """Return cuobjdump's texts about a cubin: its resource usage and its instructions."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernel.cubin"
        path.write_bytes(cubin)
        usage, listing = (
            subprocess.run(
                [tool, flag, str(path)],
                capture_output=True,
                text=True,
                check=True,
                timeout=TIMEOUT_S,
            ).stdout
            for flag in ("-res-usage", "-sass")
        )
    return usage, listing


INSTRUCTION = re.compile(r"/\*([0-9a-f]{4,8})\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)([^;\n]*);")


def read(name: str, cc: tuple[int, int], usage: str, listing: str) -> Compiled:
    """Return the Compiled that cuobjdump's texts of `-res-usage` and `-sass` describe.

    Raises ValueError unless the texts describe exactly one kernel.
    """
    usages = re.findall(r"REG:(\d+) STACK:(\d+) SHARED:(\d+) LOCAL:(\d+)", usage)
    lines = [(int(m[1], 16), m[2], m[3]) for m in INSTRUCTION.finditer(listing)]
    if len(usages) != 1 or not lines or [line[0] for line in lines].count(0) != 1:
        raise ValueError(f"{name}: cuobjdump shows {len(usages)} kernels, one was wanted")
    registers, stack, shared, local = map(int, usages[0])
    loops = []
    for address, opcode, rest in lines:
        target = re.search(r"0x([0-9a-f]+)\s*$", rest)
        if opcode.startswith("BRA") and target and int(target[1], 16) < address:
            loops.append((int(target[1], 16), address))

    def within(loop: tuple[int, int]) -> Counter:
        return Counter(_name(*line) for at, *line in lines if loop[0] <= at <= loop[1])

    def products(loop: tuple[int, int]) -> int:
        return sum(n for o, n in within(loop).items() if re.match(OPCODES["multiply-adds"], o))

    innermost = [
        loop
        for loop in loops
        if not any(o != loop and loop[0] <= o[0] and o[1] <= loop[1] for o in loops)
    ]
    inner, around, same_bank, loop = Counter(), Counter(), 0, ()
    if innermost:
        best = max(innermost, key=products)
        inner = within(best)
        body = [line[1:] for line in lines if best[0] <= line[0] <= best[1]]
        loop = tuple(f"{opcode} {rest.strip()}".strip() for opcode, rest in body)
        same_bank = sum(each.waits for each in register_operands(loop))
        outer = [o for o in loops if o[0] <= best[0] and best[1] <= o[1]]
        around = within(max(outer, key=lambda o: o[1] - o[0])) - inner
    whole = Counter(_name(*line) for _, *line in lines)
    own = max(0, shared - (SYSTEM_SHARED if cc >= (9, 0) else 0))
    return Compiled(name, cc, registers, stack + local, own, whole, inner, around, same_bank, loop)


def _name(opcode: str, operands: str) -> str:
    """Return the name of an instruction: one that adds a constant to 0 · 0 moves it."""
    return "MOV" if opcode.startswith("HFMA2") and "-RZ, RZ" in operands else opcode


OPERAND = re.compile(r"[-|~!]*R(\d+)\|?(\.reuse)?$")


@dataclass(frozen=True)
class Operands:
    """The registers of one multiply-add of floats, in the order in which `text` names them.

    `kept` holds those that the previous instruction marked `.reuse`, at the same operand position:
    they are not read again.
    """

    text: str
    registers: tuple[int, ...]
    kept: frozenset[int]

    @property
    def waits(self) -> bool:
        """Whether three registers have to be read from one bank, which delivers two at once.

        Even registers form one bank, odd ones the other (compute capability 7.0 and later).
        """
        read = set(self.registers) - self.kept
        return len(read) == 3 and len({register % 2 for register in read}) == 1


def register_operands(loop: Sequence[str]) -> list[Operands]:
    """Return the operands of each multiply-add of floats in a `Compiled.loop`."""
    found, marked = [], {}
    for line in loop:
        matches = [OPERAND.match(part.strip()) for part in line.split(",")[1:]]
        places = {place: match for place, match in enumerate(matches) if match}
        if re.match(OPCODES["multiply-adds"], line):
            kept = (int(m[1]) for place, m in places.items() if marked.get(place) == int(m[1]))
            registers = tuple(int(match[1]) for match in places.values())
            found.append(Operands(line, registers, frozenset(kept)))
        marked = {place: int(match[1]) for place, match in places.items() if match[2]}
    return found
