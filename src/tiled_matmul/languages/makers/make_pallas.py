"""Compile a kernel in Pallas: python make_pallas.py SOURCE OUT SIZE=4096 DTYPE=float16 [BM=128 …].

Writes OUT.cubin and OUT.json, for M = N = K = SIZE. The kernel has the name of its file, and SOURCE
has `matmul(a, b)`. A constant replaces the one of that name in SOURCE; so does PRECISION=highest.
Sizes are multiples of the tile's: the kernel has no masks.
XLA compiles for a GPU that H200 describes, and needs none; ptxas assembles the PTX that XLA dumps.

python make_pallas.py SOURCE --run M N K [CONSTANT=VALUE …] multiplies small whole numbers with the
kernel in Pallas' interpreter, and prints the largest difference from NumPy's product in float64.
"""

import os
import re
import subprocess
import sysconfig
import tempfile
from pathlib import Path

import making

TOOLS = Path(sysconfig.get_path("purelib"), "nvidia", "cu13")
H200 = """
platform_name: "CUDA"
device_description_str: "NVIDIA H200"
dnn_version_info { major: 9 minor: 8 }
gpu_device_info {
  cuda_compute_capability { major: 9 minor: 0 }
  threads_per_block_limit: 1024
  threads_per_warp: 32
  threads_per_core_limit: 2048
  shared_memory_per_block: 49152
  shared_memory_per_block_optin: 232448
  shared_memory_per_core: 233472
  registers_per_block_limit: 65536
  registers_per_core_limit: 65536
  core_count: 132
  fpus_per_core: 128
  block_dim_limit_x: 2147483647
  block_dim_limit_y: 65535
  block_dim_limit_z: 65535
  l2_cache_size: 52428800
  clock_rate_ghz: 1.98
  memory_bandwidth: 4800000000000
  device_memory_size: 150000000000
}
"""


def module_of(source: str, given: dict[str, str], folder: str):
    """Return SOURCE as a module, with constants replaced. Its text lies in `folder` until then."""
    lines = {}
    for name, value in given.items():
        written = repr(value) if name == "PRECISION" else value
        lines[name] = rf"^{name} = .*$", f"{name} = {written}"
    return making.loaded_with(source, lines, folder)


def whole(module, m: int, n: int, k: int) -> None:
    """Raise ValueError unless the tiles of a kernel divide these sizes."""
    tile = module.BM, module.BN, module.BK
    if any(size % edge for size, edge in zip((m, n, k), tile, strict=True)):
        asked, tiles = ("×".join(map(str, each)) for each in ((m, n, k), tile))
        raise ValueError(f"{asked} must be multiples of the tile, {tiles}")


def compile_(source: str, out: str, given: dict[str, str], folder: str) -> None:
    """Compile `source` for compute capability 9.0a, and write the product beside `out`."""
    if "SIZE" not in given:
        raise ValueError("say the size of the matrices, SIZE=4096")
    size, dtype = int(given.pop("SIZE")), given.pop("DTYPE", "float16")
    dump = Path(folder, "dump")
    os.environ["XLA_FLAGS"] = f"--xla_dump_to={dump} --xla_gpu_cuda_data_dir={TOOLS}"
    os.environ["PATH"] = os.pathsep.join([str(TOOLS / "bin"), os.environ.get("PATH", "")])
    import jax
    from jax.experimental import topologies
    from jax.sharding import SingleDeviceSharding

    options = {"target_config": H200, "topology": "1x1x1"}
    gpu, *_ = topologies.get_topology_desc("h200", "cuda", **options).devices
    there = SingleDeviceSharding(gpu)
    module, name = module_of(source, given, folder), Path(source).stem
    whole(module, size, size, size)
    matrix = jax.ShapeDtypeStruct((size, size), dtype, sharding=there)
    lowered = jax.jit(module.matmul, out_shardings=there).trace(matrix, matrix)
    lowered.lower(lowering_platforms=("cuda",)).compile()

    (text,) = [each.read_text() for each in dump.glob("*.ptx") if name in each.read_text()]
    (thunk,) = [each.read_text() for each in dump.glob("*.thunk_sequence.txt")]
    found = re.search(
        rf"kCustomKernel.* {name} grid: \[(.*?)\] threads: \[(.*?)\]\s+shared_memory: (\d+)", thunk
    )
    if thunk.count("\n") > 1 or not found:
        raise RuntimeError(f"XLA made more of it than one kernel: {thunk}")
    grid, block = ([int(x) for x in each.split(",")] for each in found.groups()[:2])
    parameters = re.search(rf"\.entry {name}\((.*?)\)", text, re.S)[1]
    if parameters.count(".param .u64") != 3 or parameters.count(".param") != 3:
        raise RuntimeError(f"the kernel takes other parameters than three addresses: {parameters}")
    ptx, cubin = Path(folder, "made.ptx"), Path(folder, "made.cubin")
    ptx.write_text(text, encoding="utf-8")
    command = [str(TOOLS / "bin" / "ptxas"), "-arch=sm_90a", str(ptx), "-o", str(cubin)]
    ran = subprocess.run(command, capture_output=True, text=True)
    if ran.returncode:
        raise RuntimeError(f"ptxas: {ran.stderr[-1000:]}")
    layout = {
        "entry": name,
        "grid": grid,
        "block": block,
        "cluster": [1, 1, 1],
        "shared": int(found[3]),
        "arguments": [{"address": "A"}, {"address": "B"}, {"address": "C"}],
    }
    making.write(out, cubin.read_bytes(), layout)


def run(source: str, m: int, n: int, k: int, given: dict[str, str], folder: str) -> float:
    """Return the largest difference from the product in float64, of the kernel interpreted."""
    import numpy as np

    dtype, _ = given.pop("DTYPE", "float16"), given.pop("SIZE", None)
    module = module_of(source, given, folder)
    whole(module, m, n, k)
    a, b = making.whole_numbers(m, n, k, dtype)
    return making.difference(np.asarray(module.matmul(a, b, interpret=True)), a, b)


def main(source: str, *rest: str) -> None:
    """Do what the command line asks."""
    if not rest:
        raise ValueError("say where to write, or --run M N K")
    os.environ["JAX_PLATFORMS"] = "cpu"
    given = making.constants_in(each for each in rest if "=" in each)
    with tempfile.TemporaryDirectory() as folder:
        if rest[0] == "--run":
            print(run(source, *map(int, rest[1:4]), given, folder))
        else:
            compile_(source, rest[0], given, folder)


if __name__ == "__main__":
    making.answer("Pallas", main)
