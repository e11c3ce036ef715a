"""How many operations the operators do, for `torch.utils.flop_counter.FlopCounterMode`.

The counter copies PyTorch's list of formulas when it is made, so the operators' must be there by
then. Its module imports Triton, which this room does only when a kernel runs. So the formulas are
registered at once if the module has been imported, else as soon as it is.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from math import prod
from types import ModuleType
from typing import Any

from tiled_matmul.torch import batched, fused, operator

COUNTER = "torch.utils.flop_counter"


def _of_matrices(a: tuple, b: tuple, *rest: Any, **more: Any) -> int:
    """Return the FLOPs of (…, M, K) · (…, K, N), from the shapes."""
    return 2 * prod(a) * b[-1]


def _of_a_layer(x: tuple, weight: tuple, *rest: Any, **more: Any) -> int:
    """Return those of x (…, K) · weight (N, K)ᵀ: as for `nn.Linear`, the products alone."""
    return 2 * prod(x) * weight[0]


def _register(counter: ModuleType) -> None:
    products = [each.product.overloadpacket for each in (operator, batched)]
    counter.register_flop_formula(products)(_of_matrices)
    counter.register_flop_formula(fused.layer.overloadpacket)(_of_a_layer)


class _Finder:
    """Lets the counter's module register the formulas at the end of its import."""

    @classmethod
    def find_spec(cls, name: str, path: Any = None, target: Any = None) -> Any:
        if name != COUNTER:
            return None
        sys.meta_path.remove(cls)
        spec = find_spec(name)
        execute = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            _register(module)

        spec.loader.exec_module = exec_module
        return spec


if COUNTER in sys.modules:
    _register(sys.modules[COUNTER])
else:
    sys.meta_path.insert(0, _Finder)
