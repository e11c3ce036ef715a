"""A name that chapters use: `order_counters.reference()` is `counters.order()`."""

from tiled_matmul.measure.counters import order as reference

__all__ = ["reference"]
