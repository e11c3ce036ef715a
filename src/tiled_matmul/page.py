"""What notebooks import: `from tiled_matmul.page import …`, for all but rungs, models and figures.

A name can still be imported from here after its module has moved, so no notebook has to change.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

NAMES = {
    "book.page": "changes first_lines ladder_table peak_rates say setup show_abroad show_source "
    "show_twin show_written source_size traced whole_numbers",
    "check": "MatmulError assert_matmul diagnose gamma run_checked",
    "explore": "explore",
    "kit": "cuda_cpp specialise",
    "kit.clusters": "check_cluster leave_together make_cluster_barriers sums_of",
    "kit.constants": "with_constants",
    "kit.float8": "dequantised quantised",
    "kit.gluon": "async_load async_store make_barriers multicasts of_rows place_of store tiles "
    "zeros",
    "kit.intrinsics": "commit_copies copy_async copy_async4 load4 store4 wait_copies",
    "kit.launch": "covering_grid launch multiprocessors",
    "kit.plans": "paused",
    "kit.products": "seen",
    "kit.programs": "cover describe grouped launched made_describable",
    "kit.tensor_memory": "load_sums",
    "kit.tile_view": "copy_tile_async tile",
    "kit.unroll": "unroll unrolled",
    "kit.unsigned": "unsigned",
    "kit.variants": "edited matmul_with with_functions without",
    "machine": "backend device",
    "machine.cpu": "cpu_core shortest_ns",
    "distributed": "cuts run tried",
    "measure": "abroad counters distributed drawn fp8 fused groups results search",
    "measure.bench": "bench equal_threads time_interleaved",
    "measure.claims": "claim claims_table",
    "measure.clock": "another_kernel time_replays",
    "measure.sizes": "compare measure",
    "measure.under_load": "under_load",
    "microscope.compiled.cuda": "Compiled NoCompiler register_operands try_compiled",
    "microscope.compiled.lines": "by_line",
    "microscope.compiled.triton": "NotCompiled tile_codes",
    "microscope.cuda": "trace watch",
    "microscope.cuda.traffic": "counted fetched measured reuse tiled_loads",
    "microscope.gluon": "timeline trace_gluon",
    "microscope.table": "table",
    "microscope.triton": "trace_tiles",
    "microscope.written": "function_of",
    "problem": "Problem as_layout",
}
HOME = {name: module for module, names in NAMES.items() for name in names.split()}
__all__ = list(HOME)


def __getattr__(name: str) -> Any:
    # Imported on first use, so that a chapter waits for no more than it uses.
    if name not in HOME:
        raise AttributeError(f"module 'tiled_matmul.page' has no attribute {name!r}")
    home = import_module(f"tiled_matmul.{HOME[name]}")
    value = getattr(home, name, None)
    return import_module(f"{home.__name__}.{name}") if value is None else value
