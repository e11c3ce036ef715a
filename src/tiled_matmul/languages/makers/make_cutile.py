"""Compile a kernel in cuTile: python make_cutile.py SOURCE OUT BM=128 BN=128 BK=64 DTYPE=float16.

Writes OUT.cubin and OUT.json. The kernel has the name of its file, and takes a, b, c, BM, BN, BK
and whether PRECISION is tf32. It keeps its own hint `num_worker_warps`; WARPS=4 gives another, and
WARPS=auto none. Row strides are multiples of 16 bytes, which TMA needs.
The kernel is exported as Tile IR and assembled here, because `export_kernel` would add line
numbers, with paths.
"""

import os
import subprocess
import sysconfig
from pathlib import Path

import making

TOOLS = Path(sysconfig.get_path("purelib"), "nvidia", "cu13", "bin")
TARGET = {"gpu_code": "sm_90"}


def main(source: str, out: str, *given: str) -> None:
    """Compile `source`, and write the product beside `out`."""
    os.environ["CUDA_TILE_CACHE_DIR"] = "off"
    os.environ["PATH"] = os.pathsep.join([str(TOOLS), os.environ.get("PATH", "")])
    import cuda.tile as ct
    from cuda.tile.compilation import (
        ArrayConstraint,
        CallingConvention,
        KernelSignature,
        export_kernel,
    )

    constants = making.constants_in(given)
    tile = [int(constants[name]) for name in ("BM", "BN", "BK")]
    dtype = constants["DTYPE"]
    name = Path(source).stem
    kernel = getattr(making.loaded(source), name)
    if "WARPS" in constants:
        warps = constants["WARPS"]
        kernel = kernel.replace_hints(num_worker_warps=None if warps == "auto" else int(warps))
    array = ArrayConstraint(
        getattr(ct, dtype),
        2,
        index_dtype=ct.int32,
        stride_lower_bound_incl=0,
        alias_groups=(),
        may_alias_internally=False,
        stride_constant=(None, 1),
        stride_divisible_by=(8 if dtype == "float16" else 4, 1),
        shape_divisible_by=(1, 1),
        base_addr_divisible_by=16,
    )
    signature = KernelSignature(
        [array, array, array, *tile, constants.get("PRECISION") == "tf32"],
        CallingConvention.cutile_python_v2(),
        symbol=name,
    )
    cubin, bytecode = f"{out}.cubin", f"{out}.tileir"
    export_kernel(kernel, [signature], bytecode, output_format="tileir_bytecode", **TARGET)
    host = ("--host-arch", "x86_64", "--host-os", "linux")
    command = ["tileiras", bytecode, "--gpu-name", TARGET["gpu_code"], "-O3", *host, "-o", cubin]
    ran = subprocess.run(command, capture_output=True, text=True)
    os.unlink(bytecode)
    if ran.returncode:
        raise RuntimeError(f"tileiras: {ran.stderr}")
    layout = {
        "entry": name,
        "grid": [[["M", tile[0]], ["N", tile[1]]], 1, 1],
        "block": [1, 1, 1],
        "cluster": [1, 1, 1],
        "shared": 0,
        "arguments": [
            *matrix("A", "M", "K"),
            *matrix("B", "K", "N"),
            *matrix("C", "M", "N"),
        ],
    }
    making.write(out, Path(cubin).read_bytes(), layout)


def matrix(name: str, rows: str, columns: str) -> list[dict]:
    """Return the parameters of an array: address, shape, and strides in elements."""
    return [{"address": name}, *({"int32": [each]} for each in (rows, columns, columns, 1))]


if __name__ == "__main__":
    making.answer("cuTile", main)
