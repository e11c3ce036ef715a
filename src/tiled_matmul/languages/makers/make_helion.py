"""Compile a kernel in Helion for sm_90a: `python make_helion.py SOURCE OUT CONSTANT=VALUE…`.

Helion's own Python runs it, on a machine without a GPU. Helion writes a program in Triton, and
Triton compiles it. SOURCE has a kernel of its own name with one `helion.Config`. The constants BM,
BN, BK, STAGES, WARPS and INDEXING replace the config's own, DTYPE is "float16" or "float32",
PRECISION is Helion's `dot_precision`. Writes OUT.cubin, and OUT.json (how to launch it, and
the program in Triton).
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import making

TARGET = 90
SIZE = 4096  # of the tensors that Helion sees; with static_shapes=False no code depends on it
ALIGNED = 16  # what Triton may know: addresses in bytes, N and K in elements, are multiples
SWIZZLES = {0: 0, 1: 32, 2: 64, 3: 128}  # CUtensorMapSwizzle, in bytes
SIZES = {"m": "M", "n": "N", "k": "K", "a_stride_0": "K", "b_stride_0": "N", "c_stride_0": "N"}


def main(asked: str, out: str, *given: str) -> None:
    """Compile and write both files. Raises RuntimeError for code that cannot be launched."""
    source, constants = Path(asked), making.constants_in(given)
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"TRITON_CACHE_DIR": folder, "TRITON_DISABLE_LINE_INFO": "1"}
        text, a, b = written(source, constants)
        path = Path(folder) / "generated.py"
        path.write_text(text, encoding="utf-8")
        host = getattr(making.loaded(path), source.stem)
        call: dict[str, Any] = {}

        def record(kernel: Any, grid: tuple, *arguments: Any, **options: Any) -> None:
            call.update(kernel=kernel, arguments=arguments, options=options)

        host(a, b, _launcher=record)
        code, layout = compiled(**call)
    block_m, block_n, _ = blocks(kernel_in(source), constants)
    layout["grid"] = [[["M", block_m], ["N", block_n]], 1, 1]
    making.write(out, code, layout, triton=text)


def kernel_in(source: Path) -> Any:
    """Return the kernel that is named after its file."""
    return getattr(making.loaded(source), source.stem)


def blocks(kernel: Any, constants: dict[str, str]) -> list[int]:
    """Return the edges of the tiles along M, N and K."""
    own = kernel.configs[0].block_sizes
    names = "BM", "BN", "BK"
    return [int(constants.get(name, edge)) for name, edge in zip(names, own, strict=True)]


def written(source: Path, constants: dict[str, str]) -> tuple[str, Any, Any]:
    """Return Helion's program in Triton, and the tensors that it was written for."""
    import helion
    import torch
    from helion import _compat

    # Helion asks the GPU of this machine whether it has TMA, and without one uses pointers.
    _compat._supports_tensor_descriptor = lambda: True
    given = kernel_in(source)
    config = dict(given.configs[0]) | {"block_sizes": blocks(given, constants)}
    for name, key in (("STAGES", "num_stages"), ("WARPS", "num_warps")):
        config |= {key: int(constants[name])} if name in constants else {}
    if "INDEXING" in constants:
        config |= {"indexing": constants["INDEXING"], "host_tensor_descriptors": False}
    settings = {"dot_precision": constants["PRECISION"]} if "PRECISION" in constants else {}
    kernel = helion.kernel(given.fn, static_shapes=False, **settings)
    dtype = getattr(torch, constants.get("DTYPE", "float16"))
    a, b = (torch.empty(SIZE, SIZE, dtype=dtype) for _ in range(2))
    bound = kernel.bind((a, b))
    bound.env.config_spec.device = torch.device("cuda")
    bound.env.config_spec.target_device_capability = divmod(TARGET, 10)
    return bound.to_code(helion.Config(**config)) + "\n", a, b


def compiled(kernel: Any, arguments: tuple, options: dict) -> tuple[bytes, dict]:
    """Return the machine code of a Triton kernel, and how to launch it.

    The code is for addresses, N and K that are multiples of ALIGNED.
    """
    import torch
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    types = {torch.float16: "fp16", torch.float32: "fp32"}
    signature, constants, aligned, matrices = {}, {}, {}, []
    names = iter("ABC")  # the order in which the kernel takes the matrices
    for place, (parameter, value) in enumerate(zip(kernel.params, arguments, strict=True)):
        name = parameter.name
        if isinstance(value, int) and value == 1:
            signature[name], constants[name] = "constexpr", 1
        elif isinstance(value, int):
            signature[name] = "i32"
        elif isinstance(value, torch.Tensor):
            signature[name] = f"*{types[value.dtype]}"
        else:
            signature[name] = f"tensordesc<{types[value.base.dtype]}{list(value.block_shape)}>"
        if isinstance(value, torch.Tensor) or SIZES.get(name) in ("N", "K"):
            aligned[(place,)] = [["tt.divisibility", ALIGNED]]
        matrices.append(None if isinstance(value, int) else next(names))
    made = triton.compile(
        ASTSource(kernel, signature, constants, aligned),
        target=GPUTarget("cuda", TARGET, 32),
        options=options,
    )
    about = made.metadata
    if about.global_scratch_size or about.profile_scratch_size:
        raise RuntimeError("the kernel needs memory of Triton's runtime")
    maps = iter(about.tensordesc_meta or ())
    layout: list[dict] = []
    for name, matrix, kind in zip(signature, matrices, signature.values(), strict=True):
        if kind == "constexpr":
            continue
        if kind == "i32":
            layout.append({"int32": [SIZES[name]]})
        elif kind.startswith("*"):
            layout.append({"address": matrix})
        else:
            rows, columns = {"A": "MK", "B": "KN", "C": "MN"}[matrix]
            told = next(maps)
            box, swizzle = told["block_size"][::-1], SWIZZLES[told["swizzle"]]
            layout.append({"map": matrix, "box": box, "swizzle": swizzle, "l2": 128})
            layout += [{"int32": [rows]}, {"int32": [columns]}]
            layout += [{"int64": [columns]}, {"int64": [1]}]
    layout += [{"int64": [0]}, {"int64": [0]}]  # Triton's scratch memory, of which none is needed
    head, _, _ = made.asm["ptx"].partition(".entry")[2].partition("{")
    if head.count(".param") != len(layout):
        raise RuntimeError(f"{head.count('.param')} parameters, and {len(layout)} were expected")
    return made.asm["cubin"], {
        "entry": about.name,
        "grid": [],
        "block": [32 * about.num_warps, 1, 1],
        "cluster": [about.num_ctas, 1, 1],
        "shared": about.shared,
        "arguments": layout,
    }


if __name__ == "__main__":
    making.answer("Helion", main)
