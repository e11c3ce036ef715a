"""Products: kernels that another language's compiler made, kept as PTX beside their sources.

So they run where that compiler is not installed: on a GPU, and without one in the course's
interpreter of PTX. A product begins with lines `// name: value`, which say what it was made from,
by what, and with which constants. One whose source, or whose compiler's locked version, is another
today is refused by name.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tiled_matmul.kit import plans, withheld
from tiled_matmul.kit.backend import select
from tiled_matmul.kit.launch import need_capability
from tiled_matmul.kit.machine_code import Code, Launch
from tiled_matmul.microscope.cuda.kernel import watched
from tiled_matmul.microscope.ptx import Kernel, Ran, parse, run

HEAD = re.compile(r"^// ([a-z ]+): (.*)$", re.M)
KEYS = ("source", "hash", "compiler", "constants", "target")
DIGITS = 16
TARGET = re.compile(r"sm_(\d+)(\d)")


class ProductError(ValueError):
    """A product is missing, is not one, or belongs to another source or compiler."""


@dataclass(frozen=True)
class Product:
    """A kernel in PTX, and the head of its file: what it was made from, by what, and how."""

    path: Path
    head: Mapping[str, str]
    text: str

    @functools.cached_property
    def kernel(self) -> Kernel:
        """The kernel, taken apart. Raises PtxError as `parse` does."""
        return parse(self.text)

    @property
    def name(self) -> str:
        """The name of the file, without its ending."""
        return self.path.stem

    @property
    def capability(self) -> tuple[int, int]:
        """The least compute capability that it runs on, such as (8, 0)."""
        major, minor = TARGET.findall(self.head["target"])[0]
        return int(major), int(minor)


def hash_of(source: str) -> str:
    """Return what a product says of the text that it was made from."""
    return hashlib.sha256(source.encode()).hexdigest()[:DIGITS]


def head_values(
    source: Path, compiler: str, constants: Mapping[str, Any], target: str
) -> dict[str, str]:
    """Return what a product says of itself, by key."""
    return {
        "source": source.name,
        "hash": hash_of(source.read_text(encoding="utf-8")),
        "compiler": compiler,
        "constants": " ".join(f"{name}={value}" for name, value in constants.items()),
        "target": target,
    }


def head_of(source: Path, compiler: str, constants: Mapping[str, int], target: str) -> str:
    """Return the lines that a product in PTX begins with."""
    values = head_values(source, compiler, constants, target)
    return "".join(f"// {name}: {value}\n" for name, value in values.items())


def check_head(name: str, head: Mapping[str, str], source: Path, compiler: str) -> None:
    """Raise ProductError if a product's head lacks a key, or is of another source or compiler.

    `name` is that of the product's file.
    """
    if missing := [key for key in KEYS if key not in head]:
        raise ProductError(f"{name} does not say its {', '.join(missing)}")
    today = {"hash": hash_of(source.read_text(encoding="utf-8")), "compiler": compiler}
    for key, what in (("hash", source.name), ("compiler", "compiler")):
        if head[key] != today[key]:
            raise ProductError(
                f"{name} was made from another {what}: it says {head[key]}, and here is "
                f"{today[key]}; `make languages` makes it anew"
            )


def read(path: Path, source: Path, compiler: str) -> Product:
    """Return the product in a file, made from `source` by `compiler`, such as "mojo 1.2.0".

    Raises ProductError if it is missing, has no such head, or was made from another text or by
    another compiler.
    """
    if not path.is_file():
        raise ProductError(f"there is no product {path.name}; `make languages` makes it")
    text = path.read_text(encoding="utf-8")
    head = dict(HEAD.findall(text.partition("\n\n")[0] + "\n"))
    check_head(path.name, head, source, compiler)
    return Product(path, head, text)


def of_square(
    products: Mapping[str, Mapping[str, int]], sizes: Sequence[int], **constants: int
) -> str:
    """Return which of the files has been compiled for M = N = K = SIZE and these constants.

    Raises ValueError that lists what there is.
    """
    size = sizes[0] if len(set(sizes)) == 1 else None
    wanted = {"SIZE": size, **constants}
    for name, known in products.items():
        if known == wanted:
            return name
    listed = "; ".join(", ".join(f"{x}={y}" for x, y in each.items()) for each in products.values())
    asked = ", ".join(f"{x.lower()}={y!r}" for x, y in constants.items())
    m, n, k = sizes
    raise ValueError(f"nothing is compiled for {m}×{n}×{k} with {asked}; there is {listed}")


def launch(product: Product, grid: tuple, block: tuple, *arguments: Any) -> None:
    """Launch a product on torch's current stream; arguments are (tensor, bytes that follow).

    The bytes follow the tensor's address in the struct that the kernel takes; a kernel that takes
    plain pointers has none. Without a GPU, or inside a trace, the interpreter of PTX runs the
    kernel; `seen` has what it saw. Raises ValueError on a GPU of a lower compute capability, and
    PtxError as `run` does.
    """
    if withheld.withhold(product, grid, block, arguments, {}):
        return
    if not select().on_gpu or watched():
        _interpreted(product, grid, block, arguments)
        return
    import torch

    need_capability(product.capability, f"products like {product.name}")
    code = _code(product.text, torch.cuda.current_device())
    made = StructLaunch(code, grid, block, product.kernel, [rest for _, rest in arguments])
    tensors = [x for x, _ in arguments]
    made.begin([x.data_ptr() for x in tensors], torch.cuda.current_stream().cuda_stream)
    plans.note(lambda plan: made.noted(plan, tensors))


def _interpreted(product: Product, grid: tuple, block: tuple, arguments: Sequence) -> Ran:
    return run(
        product.kernel, grid, block, [(x.detach().cpu().numpy(), rest) for x, rest in arguments]
    )


def seen(matmul: Callable, a: Any, b: Any, **options: Any) -> Ran:
    """Return what the interpreter of PTX sees of the product that `matmul(a, b)` launches.

    It interprets on the CPU, also on a machine with a GPU. Raises as `matmul` and `run` do.
    """
    if select().on_gpu:
        a, b = a.cuda(), b.cuda()
    (each,) = withheld.of(matmul, a, b, **options)
    return _interpreted(each.kernel, each.grid, each.block, each.arguments)


class StructLaunch(Launch):
    """A launch whose arguments are structs that begin with the address of a tensor."""

    def __init__(
        self, code: Code, grid: tuple, block: tuple, kernel: Kernel, rests: Sequence[bytes]
    ) -> None:
        super().__init__(code, grid, block, ())
        sizes = kernel.parameters.values()
        self.rests = [rest.ljust(size - 8, b"\0") for size, rest in zip(sizes, rests, strict=True)]

    def begin(self, addresses: Sequence[int], stream: int) -> None:
        """Launch with these addresses, on a stream of the current GPU."""
        pairs = zip(addresses, self.rests, strict=True)
        structs = [
            ctypes.create_string_buffer(address.to_bytes(8, "little") + rest, 8 + len(rest))
            for address, rest in pairs
        ]
        self.places = [ctypes.addressof(each) for each in structs]
        super().begin((), stream)


@functools.cache
def _code(text: str, gpu: int) -> Code:
    """Return a product's code on a GPU, which is the current one: the driver compiles it."""
    return Code(text.encode() + b"\0", gpu)
