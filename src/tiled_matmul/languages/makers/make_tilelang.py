"""Compile a kernel in TileLang for sm_90a: `python make_tilelang.py SOURCE OUT CONSTANT=VALUE…`.

TileLang's own Python runs it, on a machine without a GPU. TileLang writes CUDA C++, and the nvcc
that its lock names compiles it. SOURCE has a kernel of its own name under `tilelang.jit`. The
constants are arguments of it in capitals: numbers, a DTYPE such as "float32", or the name of a
`GemmWarpPolicy`. Writes OUT.cubin, and OUT.json (how to launch it).
"""

from __future__ import annotations

import os
import re
import subprocess
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

import making

ARCH = "sm_90a"
SIZE = 4096  # of the tensors that TileLang sees; its code is for any
TENSOR_MAP = "__tvm_tensormap_create_tiled"
SWIZZLES = 0, 32, 64, 128  # CUtensorMapSwizzle, in bytes
PROMOTIONS = 0, 64, 128, 256  # CUtensorMapL2promotion, in bytes
# In names of what the headers keep to a file, nvcc puts a number that differs from run to run.
DRAWN = re.compile(rb"(?<=_INTERNAL_)[0-9a-f]{8}(?=_)|(?<=_GLOBAL__N__)[0-9a-f]{8}(?=_)")
EDGES = re.compile(r"\((\w+) \+ (\d+)\) // (\d+)")  # ceil(size / edge), as TVM prints it


def main(source: str, out: str, *given: str) -> None:
    """Compile and write both files. Raises RuntimeError with the compiler's log."""
    text, layout = lowered(Path(source), making.constants_in(given))
    with tempfile.TemporaryDirectory() as folder:
        os.environ["PATH"] = f"{toolkit() / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}"
        Path(folder, "kernel.cu").write_text(text, encoding="utf-8")
        command = ["nvcc", "-cubin", f"-arch={ARCH}", "-O3", "-std=c++17", "-w", "kernel.cu"]
        for place in includes():
            command += ["-I", str(place)]
        ran = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        if ran.returncode:
            raise RuntimeError(ran.stderr.strip())
        code = DRAWN.sub(b"00000000", Path(folder, "kernel.cubin").read_bytes())
    making.write(out, code, layout)


def lowered(source: Path, constants: dict[str, str]) -> tuple[str, dict]:
    """Return TileLang's code in CUDA C++, and how to launch it."""
    import torch
    from tilelang import tvm
    from tilelang.engine.lower import lower
    from tvm.target import Target

    kernel = getattr(making.loaded(source), source.stem)
    kernel.target = target = Target({"kind": "cuda", "arch": ARCH})
    given = {name.lower(): argument(name, value) for name, value in constants.items()}
    dtype = getattr(torch, constants.get("DTYPE", "float16"))
    a, b = (torch.empty(SIZE, SIZE, dtype=dtype) for _ in range(2))
    program = kernel.get_tir(a, b, **given)
    with target:
        made = lower(program, target=target, target_host="c")
    (device,) = made.device_mod.functions.values()
    calls: list[list[str]] = []

    def visit(node: Any) -> None:
        if isinstance(node, tvm.tirx.Call) and "call_packed" in str(node.op):
            calls.append([str(each).strip('"') for each in node.args])

    for function in made.host_mod.functions.values():
        tvm.tirx.stmt_functor.post_order_visit(function.body, visit)
    maps = {call[1]: tensor_map(call) for call in calls if call[0] == TENSOR_MAP}
    entry = str(device.attrs["global_symbol"])
    (launch,) = (call for call in calls if call[0] == entry)
    names = [str(each) for each in device.attrs["tirx.kernel_launch_params"]]
    numbers = dict(zip(names, launch[1 + len(device.params) :], strict=True))
    arguments = []
    for each in device.params:
        if each.name in maps:
            arguments.append(maps[each.name])
        elif str(each.dtype) == "int32":
            arguments.append({"int32": [each.name]})
        else:
            arguments.append({"address": each.name.upper()})
    return made.kernel_source, {
        "entry": entry,
        "grid": [axis(numbers.get(f"blockIdx.{x}", "1")) for x in "xyz"],
        "block": [int(numbers.get(f"threadIdx.{x}", "1")) for x in "xyz"],
        "cluster": [1, 1, 1],
        "shared": int(numbers.get("tirx.use_dyn_shared_memory", "0")),
        "arguments": arguments,
    }


def argument(name: str, value: str) -> Any:
    """Return a constant as the kernel takes it."""
    import tilelang.language as T

    if value.isdigit():
        return int(value)
    return getattr(T if name == "DTYPE" else T.GemmWarpPolicy, value)


def tensor_map(call: list[str]) -> dict:
    """Return the map that a call of the host's code makes, of a row-major matrix.

    The call has name, map, dtype, rank and address, then two each of sizes, strides in bytes,
    edges of the box and its steps, and then interleave, swizzle, promotion and fill.
    """
    name, rank = call[4], int(call[3])
    if rank != 2:
        raise RuntimeError(f"the map of {name} has {rank} dimensions")
    box, (interleave, swizzle, promotion, fill) = call[9:11], map(int, call[13:17])
    if interleave or fill or call[11:13] != ["1", "1"]:
        raise RuntimeError(f"the map of {name} is no plain one: {call[8:]}")
    return {
        "map": name.upper(),
        "box": [int(edge) for edge in box],
        "swizzle": SWIZZLES[swizzle],
        "l2": PROMOTIONS[promotion],
    }


def axis(blocks: str) -> int | list:
    """Return a number of blocks as [size, edge], or as the number that it is."""
    if blocks.isdigit():
        return int(blocks)
    found = EDGES.fullmatch(blocks)
    if not found or int(found[2]) + 1 != int(found[3]):
        raise RuntimeError(f"{blocks} blocks along an axis")
    return [found[1], int(found[3])]


def packages() -> Path:
    """Return the folder of installed packages."""
    return Path(sysconfig.get_path("purelib"))


def toolkit() -> Path:
    """Return the folder with nvcc's wheel. Raises RuntimeError if there is none."""
    folder = packages() / "nvidia" / "cu13"
    if not (folder / "bin" / "nvcc").is_file():
        raise RuntimeError("there is no nvcc: the lock should name the package that brings it")
    return folder


def includes() -> list[Path]:
    """Return the folders of headers: TileLang's, those of CUTLASS that it brings, and CUDA's."""
    own = packages() / "tilelang"
    return [own / "src", own / "3rdparty" / "cutlass" / "include", toolkit() / "include"]


if __name__ == "__main__":
    making.answer("TileLang", main)
