"""Compile a kernel in CuTe DSL: python make_cute.py SOURCE OUT BN=128 STAGES=4.

Writes OUT.cubin and OUT.json. The kernel has the name of its file, and its host function is
`matmul`. Its parameters are what the compiler leaves of that function's arguments: the MMA, which
has no content, and for each matrix a tensor map and the shape that it covers. N and K are multiples
of 8.
"""

import os
from pathlib import Path

import making

BM, BK, ELEMENT_BYTES, BARRIER_BYTES = 128, 64, 2, 8


def main(source: str, out: str, *given: str) -> None:
    """Compile `source`, and write the product beside `out`."""
    os.environ.update(CUTE_DSL_ARCH="sm_90a", CUTE_DSL_KEEP="cubin", CUTE_DSL_NO_CACHE="1")
    os.environ["CUTE_DSL_DUMP_DIR"] = str(Path(out).resolve().parent)
    before = set(Path(out).resolve().parent.iterdir())
    import cutlass
    import cutlass.cute as cute
    from cutlass.cute.runtime import make_fake_tensor

    constants = making.constants_in(given)
    bn, stages = int(constants["BN"]), int(constants["STAGES"])
    name = Path(source).stem
    module = making.loaded(source)

    def matrix():
        columns, stride = cute.sym_int32(divisibility=8), cute.sym_int64(divisibility=8)
        shape = (cute.sym_int32(), columns)
        return make_fake_tensor(cutlass.Float16, shape, (stride, 1), assumed_align=16)

    kernel = getattr(module, name)
    kernel.set_name_prefix(name, remove_cutlass_symbol=True, keep_mangled_name=False)
    made = cute.compile(module.matmul, matrix(), matrix(), matrix(), bn, stages)
    (entry,) = made.kernel_info
    for path in set(Path(out).resolve().parent.iterdir()) - before:
        if path.name.startswith("cutlass_") or "FakeTensor" in path.name:
            path.unlink()
    elements = stages * (BM + bn) * BK  # C's tile lies over B's
    layout = {
        "entry": entry,
        "grid": [module.GROUP, ["N", bn], ["M", BM * module.GROUP]],
        "block": [288, 1, 1],
        "cluster": [1, 1, 1],
        "shared": elements * ELEMENT_BYTES + 2 * stages * BARRIER_BYTES,
        "arguments": [
            {"bytes": 1},
            tensor_map("A", BM),
            {"int32": ["M", "K"]},
            tensor_map("B", BK),
            {"int32": ["N", "K"]},
            tensor_map("C", BM),
            {"int32": ["M", "N"]},
        ],
    }
    making.write(out, made.__cubin__, layout)


def tensor_map(name: str, rows: int) -> dict:
    """Return the parameter that describes a matrix, for copies of boxes of 64 columns."""
    return {"map": name, "box": [64, rows], "swizzle": 128, "l2": 128}


if __name__ == "__main__":
    making.answer("CuTe DSL", main)
