"""Compile a kernel in Warp: python make_warp.py SOURCE OUT TM=64 TN=64 TK=64 DTYPE=float16.

Writes OUT.cubin and OUT.json. The kernel has the name of its file, and takes a, b and c. A constant
replaces the one of that name in SOURCE; PRECISION=tf32 is an argument that `tile_matmul` gets.

python make_warp.py SOURCE --run M N K [CONSTANT=VALUE …] multiplies small whole numbers on the CPU
with the kernel, and prints the largest difference from NumPy's product in float64.
"""

import json
import os
import struct
import tempfile
from pathlib import Path

import making

# ELF: symbols are (name, info, other, section, value, size), sections (name, kind, flags, address,
# offset, size, link, info, alignment, entry size), segments (kind, flags, offset, …).
SYMBOL, HEAD, SEGMENT = "<IBBHQQ", "<IIQQQQIIQQ", "<IIQQQQQQ"
SYMBOLS, RELOCATIONS, EMPTY = 2, 4, 8  # kinds of sections
OF_SECTION = 3  # a kind of symbols
# Attributes of a cubin, in .nv.info: constant bank, frame, least and greatest stack, registers.
SIZED, OF_SYMBOL = 4, (0x0A, 0x11, 0x12, 0x23, 0x2F)


def module_of(source: str, given: dict[str, str], folder: str):
    """Return SOURCE as a module, with constants replaced. Its text lies in `folder` until then."""
    lines = {}
    for name, value in given.items():
        lines[name] = rf"^{name} = .*$", f"{name} = {'wp.' * (name == 'DTYPE')}{value}"
        if name == "PRECISION":
            lines[name] = r"(wp\.tile_matmul\(.*)\)$", rf'\1, precision="{value}")'
    return making.loaded_with(source, lines, folder)


def compile_(source: str, out: str, given: dict[str, str], folder: str) -> None:
    """Compile `source` for compute capability 9.0, and write the product beside `out`."""
    import warp as wp

    module = module_of(source, given, folder)
    name, threads = Path(source).stem, module.THREADS
    of = getattr(module, name).module
    of.options["block_dim"] = threads
    made = Path(folder, "made")
    (path,) = wp.compile_aot_module(of, arch=90, module_dir=made, use_ptx=False, strip_hash=True)
    (meta,) = made.glob("*.meta")
    ((key, shared),) = json.loads(meta.read_text(encoding="utf-8")).items()
    tiles = [{"ceil": ["M", module.TM]}, {"ceil": ["N", module.TN]}]
    step = 4 if "float32" in str(module.DTYPE) else 2
    layout = {
        "entry": key.removesuffix("_smem_bytes"),
        "grid": [[["M", module.TM], ["N", module.TN]], 1, 1],
        "block": [threads, 1, 1],
        "cluster": [1, 1, 1],
        "shared": shared,
        # The grid of tiles, the number of threads, and the threads that share a tile.
        "arguments": [
            {"struct": [{"int32": tiles}, {"int64": [[*tiles, threads], threads]}]},
            array("A", "M", "K", step),
            array("B", "K", "N", step),
            array("C", "M", "N", step),
        ],
    }
    making.write(out, stripped(path.read_bytes()), layout)


def array(name: str, rows: str, columns: str, step: int) -> dict:
    """Return the parameter of a row-major array: addresses, shape, strides in bytes, dimensions.

    The second address is of its gradient, and the last two numbers are flags.
    """
    fields = [
        {"address": name},
        {"int64": [0]},
        {"int32": [rows, columns, 0, 0]},
        {"int32": [[columns, step], step, 0, 0]},
        {"int32": [2]},
        {"pad": 4},
    ]
    return {"struct": fields}


def stripped(cubin: bytes) -> bytes:
    """Return a cubin without the symbols of inlined functions, whose names are most of its bytes.

    Symbols stay of sections, of the kernel, of what the driver reserves, and those that relocations
    and attributes name by number.
    """
    places = struct.unpack_from("<Q", cubin, 0x28)[0]
    count, of_names = struct.unpack_from("<HH", cubin, 0x3C)
    heads = [list(struct.unpack_from(HEAD, cubin, places + 64 * x)) for x in range(count)]
    bodies = [b"" if head[1] == EMPTY else cubin[head[4] :][: head[5]] for head in heads]
    (table,) = (x for x in range(count) if heads[x][1] == SYMBOLS)
    texts = heads[table][6]
    symbols = [list(each) for each in struct.iter_unpack(SYMBOL, bodies[table])]
    infos = [x for x in range(count) if text_at(bodies[of_names], heads[x][0])[:8] == b".nv.info"]
    moves = [x for x in range(count) if heads[x][1] == RELOCATIONS]
    codes = [x for x in range(count) if text_at(bodies[of_names], heads[x][0])[:6] == b".text."]

    named = {0, *(heads[x][7] & 0xFFFFFF for x in codes)}
    named |= {info >> 32 for x in moves for _, info, _ in struct.iter_unpack("<QQq", bodies[x])}
    named |= {number for x in infos for _, number in attributes(bodies[x])}
    for x, (text, info, *_) in enumerate(symbols):
        reserved = text_at(bodies[texts], text).startswith((b".nv.", b"__nv_"))
        if info & 15 == OF_SECTION or (info >> 4 and reserved):
            named.add(x)
    kept = sorted(named, key=lambda x: (symbols[x][1] >> 4 > 0, x))
    new = {old: x for x, old in enumerate(kept)}

    strings, made = bytearray(1), b""
    for old in kept:
        text = text_at(bodies[texts], symbols[old][0])
        place = len(strings) if text else 0
        strings += text + b"\0" if text else b""
        made += struct.pack(SYMBOL, place, *symbols[old][1:])
    bodies[table], bodies[texts] = made, bytes(strings)
    heads[table][7] = sum(not symbols[old][1] >> 4 for old in kept)
    for x in moves:
        bodies[x] = b"".join(
            struct.pack("<QQq", place, new[info >> 32] << 32 | info & 0xFFFFFFFF, more)
            for place, info, more in struct.iter_unpack("<QQq", bodies[x])
        )
    for x in infos:
        body = bytearray(bodies[x])
        for place, number in attributes(bodies[x]):
            struct.pack_into("<I", body, place, new[number])
        bodies[x] = bytes(body)
    for x in codes:
        heads[x][7] = heads[x][7] >> 24 << 24 | new[heads[x][7] & 0xFFFFFF]
    return written(cubin, heads, bodies)


def attributes(body: bytes) -> list[tuple[int, int]]:
    """Return (place, number) of each symbol that a section of attributes names by its number."""
    found, place = [], 0
    while place < len(body):
        form, kind, size = struct.unpack_from("<BBH", body, place)
        if form == SIZED and kind in OF_SYMBOL:
            found.append((place + 4, struct.unpack_from("<I", body, place + 4)[0]))
        place += 4 + (size if form == SIZED else 0)
    return found


def written(cubin: bytes, heads: list, bodies: list) -> bytes:
    """Return the file of these sections; section headers and program headers follow them."""
    out, moved = bytearray(cubin[:64]), {}
    for head, body in zip(heads[1:], bodies[1:], strict=True):
        out += bytes(-len(out) % max(head[8], 1))
        moved[head[4]] = head[4] = moved.get(head[4], len(out)) if not body else len(out)
        head[5] = len(body) if head[1] != EMPTY else head[5]
        out += body
    out += bytes(-len(out) % 8)
    struct.pack_into("<Q", out, 0x28, len(out))
    out += b"".join(struct.pack(HEAD, *head) for head in heads)
    place, segments = (
        struct.unpack_from("<Q", cubin, 0x20)[0],
        struct.unpack_from("<H", cubin, 0x38)[0],
    )
    moved[place] = len(out)
    struct.pack_into("<Q", out, 0x20, len(out))
    for x in range(segments):
        segment = list(struct.unpack_from(SEGMENT, cubin, place + 56 * x))
        segment[2] = moved[segment[2]]
        out += struct.pack(SEGMENT, *segment)
    return bytes(out)


def text_at(table: bytes, place: int) -> bytes:
    """Return the string at a place of a table of strings."""
    return table[place : table.index(b"\0", place)]


def run(source: str, m: int, n: int, k: int, given: dict[str, str], folder: str) -> float:
    """Return the largest difference from the product in float64, of the kernel on the CPU."""
    import numpy as np
    import warp as wp

    module = module_of(source, given, folder)
    dtype = wp.dtype_to_numpy(module.DTYPE)
    a, b = making.whole_numbers(m, n, k, dtype)
    c = wp.array(np.full((m, n), np.nan, dtype), dtype=module.DTYPE, device="cpu")
    module.matmul(*(wp.array(x, dtype=module.DTYPE, device="cpu") for x in (a, b)), c)
    return making.difference(c.numpy(), a, b)


def main(source: str, *rest: str) -> None:
    """Do what the command line asks."""
    if not rest:
        raise ValueError("say where to write, or --run M N K")
    given = making.constants_in(each for each in rest if "=" in each)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["WARP_CACHE_PATH"] = folder
        import warp as wp

        wp.config.log_level = wp.LOG_ERROR
        if rest[0] == "--run":
            print(run(source, *map(int, rest[1:4]), given, folder))
        else:
            compile_(source, rest[0], given, folder)


if __name__ == "__main__":
    making.answer("Warp", main)
