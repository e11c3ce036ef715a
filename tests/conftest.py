"""Tests run on the back end that the course selects: the GPU, or the simulators.

Where there is no GPU, tests marked `gpu` are deselected, and pytest's last line counts them. With
`TILED_MATMUL_BACKEND=gpu` (`make test-gpu`) a machine with no usable GPU is an error.
"""

import pytest

from tiled_matmul import backend


def pytest_configure(config: pytest.Config) -> None:
    # Before any test module imports Numba or Triton, which read their switches when imported.
    try:
        config.stash[BACKEND] = backend.select()
    except backend.BackendError as error:
        raise pytest.UsageError(str(error)) from None


def pytest_report_header(config: pytest.Config) -> str:
    chosen = config.stash[BACKEND]
    return f"back end: {chosen.name} ({chosen.reason})"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.stash[BACKEND].name == "gpu":
        return
    needs_gpu = [item for item in items if item.get_closest_marker("gpu")]
    if needs_gpu:
        config.hook.pytest_deselected(items=needs_gpu)
        items[:] = [item for item in items if not item.get_closest_marker("gpu")]


BACKEND = pytest.StashKey[backend.Backend]()
