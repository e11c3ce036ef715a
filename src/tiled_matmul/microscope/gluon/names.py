"""What Gluon's names mean in the interpreter: a kernel's functions, with its globals exchanged.

A kernel is Python, and its own code runs. Only the objects change that its names stand for: Gluon's
modules and functions become those of `meanings`, functions under `@gluon.jit` are exchanged
likewise, and a `gl.constexpr` is its value. Objects are known by what they are, not by their names,
so a module's alias or a function that Triton renamed is found.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tiled_matmul.microscope.gluon.cluster import Cluster
from tiled_matmul.microscope.gluon.shared import View
from tiled_matmul.microscope.gluon.values import Tile, shares, torch_dtype


class Unknown(NotImplementedError):
    """A name of Gluon's that the interpreter does not know."""


class Room:
    """A module of Gluon's, with the meanings that are known; others of its names raise Unknown."""

    def __init__(self, module: Any, meanings: Mapping[str, Any]) -> None:
        self._module, self._meanings = module, meanings

    def __getattr__(self, name: str) -> Any:
        if name in self._meanings:
            return self._meanings[name]
        real = getattr(self._module, name)
        if _is_data(real):
            return _value(real)
        short = self._module.__name__.removeprefix("triton.experimental.gluon.language")
        raise Unknown(f"the interpreter of Gluon does not know gl{short}.{name}")


class Exchanged:
    """Exchanges the globals of kernels, for one cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._by_identity = {id(real): meant for real, meant in meanings(cluster)}
        self._made: dict[Any, Callable] = {}

    def function(self, kernel: Any) -> Callable:
        """Return a kernel's own function with its globals exchanged."""
        fn = kernel.fn
        if fn in self._made:
            return self._made[fn]
        names: dict[str, Any] = {}
        made = types.FunctionType(fn.__code__, names, fn.__name__, fn.__defaults__)
        made.__kwdefaults__ = fn.__kwdefaults__
        self._made[fn] = made
        self.cluster.record.codes.add(fn.__code__)
        names["__builtins__"] = fn.__globals__.get("__builtins__", __builtins__)
        for name in _names(fn.__code__):
            if name in fn.__globals__:
                names[name] = self.value(fn.__globals__[name])
        if fn.__closure__:
            raise Unknown(f"the interpreter runs no kernel in a closure, such as {fn.__name__}")
        return made

    def value(self, real: Any) -> Any:
        """Return what an object of a kernel's globals means."""
        if id(real) in self._by_identity:
            return self._by_identity[id(real)]
        if is_gluon(real):
            return self.function(real)
        if getattr(real, "__module__", "").startswith("triton.") and callable(real):
            if not _is_data(real):
                raise Unknown(f"the interpreter of Gluon does not know {real.__name__}")
        if isinstance(real, types.FunctionType):
            raise Unknown(
                f"{real.__name__} is a function of Python's; a kernel in Gluon can call those "
                "under @gluon.jit"
            )
        return _value(real)


def is_gluon(kernel: Any) -> bool:
    """Is it a function under `@gluon.jit`?"""
    return callable(getattr(kernel, "is_gluon", None)) and kernel.is_gluon()


def meanings(cluster: Cluster) -> list[tuple[Any, Any]]:
    """Return (object of Gluon's, what it means) for all that the interpreter knows."""
    from triton.experimental.gluon import language as gl
    from triton.experimental.gluon.language.nvidia import blackwell, hopper
    from triton.experimental.gluon.language.nvidia.hopper import mbarrier, tma
    from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

    known = {
        gl: _language(cluster),
        mbarrier: _barriers(cluster),
        tma: _copies(cluster),
        hopper: _hopper(cluster),
        blackwell: _blackwell(cluster),
    }
    pairs: list[tuple[Any, Any]] = [(gdc_wait, _alone), (gdc_launch_dependents, _alone)]
    if _real("cluster"):  # from Triton 3.7 on
        pairs.append((_real("cluster"), _cluster(cluster)))
    for module, names in known.items():
        pairs.append((module, Room(module, names)))
        pairs += [
            (getattr(module, name), meant)
            for name, meant in names.items()
            if callable(getattr(module, name, None))
        ]
    return pairs


def _alone() -> None:
    """Wait for the kernel before, or let the next one start: here one begins as another ends."""


def _language(cluster: Cluster) -> dict[str, Any]:
    import torch
    from triton.experimental.gluon import language as gl

    def full(shape: Sequence[int], value: Any, dtype: Any, layout: Any = None) -> Tile:
        own = shares(layout, len(shape), cluster.blocks) if cluster.blocks > 1 else None
        local = own.local(shape) if own else tuple(shape)
        return Tile(torch.full(local, value, dtype=torch_dtype(dtype)), shape, dtype)

    def zeros(shape: Sequence[int], dtype: Any, layout: Any = None) -> Tile:
        return full(shape, 0, dtype, layout)

    def arange(start: int, end: int, layout: Any = None) -> Tile:
        if cluster.blocks > 1:
            raise Unknown(
                "the interpreter of Gluon knows gl.arange for one block, not for clusters"
            )
        return Tile(torch.arange(start, end, dtype=torch.int32), [end - start], gl.int32)

    def where(condition: Any, x: Any, y: Any) -> Any:
        if not isinstance(condition, Tile):
            return x if condition else y
        pair = [part.data if isinstance(part, Tile) else part for part in (x, y)]
        data = torch.where(condition.data, *pair)
        kinds = [part.dtype for part in (x, y) if isinstance(part, Tile)]
        return Tile(data, data.shape, (kinds or [gl.float32])[0])

    def load(pointer: Any, mask: Any = None, other: Any = None, **options: Any) -> Any:
        return pointer.load(mask, other)

    def store(pointer: Any, value: Any, mask: Any = None, **options: Any) -> None:
        pointer.store(value, mask)

    def extreme(name: str, builtin: Any) -> Any:
        def of_two(x: Any, y: Any) -> Any:
            if not isinstance(x, Tile):
                x, y = y, x
            if not isinstance(x, Tile):
                return builtin(x, y)
            return x._with(y, lambda a, b: getattr(torch, name)(a, torch.as_tensor(b)))

        return of_two

    def warp_specialize(jobs: Any, *rest: Any) -> Any:
        if not all(isinstance(job, tuple | list) and callable(job[0]) for job in jobs):
            raise Unknown("warp_specialize takes a list of (function, arguments)")
        return cluster.specialise([(job[0], job[1]) for job in jobs])

    return {
        "program_id": lambda axis: cluster.program if axis == 0 else 0,
        "num_programs": lambda axis: cluster.programs if axis == 0 else 1,
        "num_ctas": lambda: cluster.blocks,
        "cdiv": lambda a, b: -(-a // b),
        "static_range": range,
        "static_assert": _static_assert,
        "constexpr": lambda value: value,
        "full": full,
        "zeros": zeros,
        "warp_specialize": warp_specialize,
        "allocate_shared_memory": _allocate(cluster),
        "minimum": extreme("minimum", min),
        "maximum": extreme("maximum", max),
        "arange": arange,
        "load": load,
        "store": store,
        "where": where,
        "expand_dims": lambda tile, axis: tile[(slice(None),) * axis + (None,)],
        "convert_layout": lambda tile, layout, assert_trivial=False: tile,
        "sum": lambda tile, axis: tile.reduced(torch.sum, axis),
        "max": lambda tile, axis: tile.reduced(torch.amax, axis),
        "min": lambda tile, axis: tile.reduced(torch.amin, axis),
        "barrier": lambda: None,  # of the threads of a role, which are one here
        "thread_barrier": lambda: None,
    }


def _barriers(cluster: Cluster) -> dict[str, Any]:
    def init(barrier: Any, count: int) -> None:
        cluster.init(_view(barrier), int(count))

    def expect(barrier: Any, bytes_per_cta: int, pred: Any = True) -> None:
        cluster.expect(_view(barrier), bytes_per_cta, pred)

    def arrive(barrier: Any, *, count: int = 1, pred: Any = True) -> None:
        cluster.arrive(_view(barrier), count, pred)

    def wait(barrier: Any, phase: int, pred: Any = True, deps: Any = ()) -> None:
        cluster.wait(_view(barrier), phase, pred)

    def sync_cluster_init() -> None:
        cluster.meet("init")

    meant = {"init": init, "expect": expect, "arrive": arrive, "wait": wait}
    meant |= {"invalidate": lambda barrier: None, "sync_cluster_init": sync_cluster_init}
    return meant | {"MBarrierLayout": _real("mbarrier").MBarrierLayout}


def _copies(cluster: Cluster) -> dict[str, Any]:
    def load(tensor_desc, coord, barrier, result, pred=True, multicast=False, cache_policy=None):  # noqa: ANN001, ANN202
        to = _view(result)
        cluster.copy(tensor_desc, coord, _view(barrier), to, pred, bool(multicast))

    def store(tensor_desc, coord, src, cache_policy=None):  # noqa: ANN001, ANN202
        cluster.start_store(tensor_desc, coord, _view(src))

    return {
        "async_load": load,
        "async_copy_global_to_shared": load,
        "async_store": store,
        "async_copy_shared_to_global": store,
        "store_wait": lambda pendings: cluster.wait_stores(int(pendings)),
    }


def _hopper(cluster: Cluster) -> dict[str, Any]:
    def warpgroup_mma(  # noqa: ANN202
        a, b, acc, *, use_acc=True, precision=None, max_num_imprecise_acc=None, is_async=False  # noqa: ANN001
    ):  # fmt: skip
        left = _view(a) if isinstance(a, SharedTile) else a
        return cluster.multiply(left, _view(b), acc, use_acc, bool(is_async))

    def warpgroup_mma_wait(num_outstanding: int = 0, deps: Any = None) -> Any:
        if deps is None:
            raise ValueError("warpgroup_mma_wait deps must be given")
        return cluster.wait_products(int(num_outstanding), list(deps))

    fence = cluster.fence

    def fence_async_shared(cluster: bool = False) -> None:
        fence()

    return {
        "warpgroup_mma": warpgroup_mma,
        "warpgroup_mma_wait": warpgroup_mma_wait,
        "warpgroup_mma_init": lambda value: value,
        "fence_async_shared": fence_async_shared,
        "mbarrier": Room(_real("mbarrier"), _barriers(cluster)),
        "cluster": _cluster(cluster),
        "tma": Room(_real("tma"), _copies(cluster)),
    }


def _cluster(cluster: Cluster) -> Any:
    def barrier(relaxed: bool = False) -> None:
        cluster.leave()

    meant = {"arrive": lambda relaxed=False: None, "wait": cluster.leave, "barrier": barrier}
    return Room(_real("cluster"), meant)


def _allocate(cluster: Cluster) -> Callable:
    """Return what allocates shared memory, and tensor memory."""

    def allocate(element_ty: Any, shape: Sequence[int], layout: Any, value: Any = None) -> Any:
        made = SharedTile(cluster, cluster.allocate(element_ty, shape, layout))
        if value is not None:
            made.store(value)
        return made

    return allocate


def _blackwell(cluster: Cluster) -> dict[str, Any]:
    def tcgen05_mma(  # noqa: ANN202
        a, b, acc, *, use_acc=True, pred=True, mbarriers=None, mbarrier_preds=None  # noqa: ANN001
    ):  # fmt: skip
        if mbarriers is not None and mbarrier_preds is not None:
            mbarriers = [x for x, there in zip(mbarriers, mbarrier_preds, strict=True) if there]
        barriers = None if mbarriers is None else [_view(x) for x in mbarriers]
        cluster.multiply_there(_view(a), _view(b), _view(acc), use_acc, pred, barriers)

    return {
        "allocate_tensor_memory": _allocate(cluster),
        "get_tmem_reg_layout": lambda *shape, **more: None,
        "tcgen05_mma": tcgen05_mma,
        "tcgen05_commit": lambda barrier, pred=True: cluster.commit(_view(barrier), pred),
    }


class SharedTile:
    """A descriptor of shared memory, or of tensor memory, as a kernel sees it."""

    def __init__(self, cluster: Cluster, view: View) -> None:
        self._cluster, self.view = cluster, view

    @property
    def shape(self) -> list[int]:
        """The shape of the whole tile."""
        return self.view.shape

    @property
    def dtype(self) -> Any:
        """The elements' dtype."""
        return self.view.dtype

    @property
    def layout(self) -> Any:
        """The layout."""
        return self.view.layout

    def index(self, at: int) -> SharedTile:
        """Return one buffer."""
        return SharedTile(self._cluster, self.view.indexed(at))

    def permute(self, order: Sequence[int]) -> SharedTile:
        """Return the buffer with its dimensions in another order."""
        return SharedTile(self._cluster, self.view.permuted(order))

    def store(self, tile: Tile) -> None:
        """Store a tile from registers."""
        self._cluster.store(self.view, tile)

    def load(self, layout: Any = None) -> Tile:
        """Return the tile in registers."""
        return self._cluster.load(self.view)

    def __getattr__(self, name: str) -> Any:
        raise Unknown(f"the interpreter of Gluon knows no `{name}` of memory")


def _view(given: Any) -> View:
    if not isinstance(given, SharedTile):
        raise TypeError(f"shared memory was expected, got {given!r}")
    return given.view


def _static_assert(condition: Any, message: str = "") -> None:
    if not condition:
        raise AssertionError(message or "gl.static_assert")


def _real(name: str) -> Any:
    from triton.experimental.gluon.language.nvidia import hopper

    return getattr(hopper, name, None)


def _names(code: types.CodeType) -> set[str]:
    """Return the names that code may look up in its globals, also in functions inside it."""
    inner = [const for const in code.co_consts if isinstance(const, types.CodeType)]
    return set(code.co_names).union(*map(_names, inner))


def _is_data(real: Any) -> bool:
    """Is it a dtype, a layout or a constant, and no function of Gluon's that acts?"""
    return inspect.isclass(real) or not callable(real) or type(real).__name__ == "constexpr"


def _value(real: Any) -> Any:
    return real.value if type(real).__name__ == "constexpr" else real
