"""Tests run on the back end that the course selects: the GPU, or the simulators.

Where there is no GPU, tests marked `gpu` are deselected, and pytest's last line counts them. With
`TILED_MATMUL_BACKEND=gpu` (`make test-gpu`) a machine with no usable GPU is an error.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from compiled_once import forget_unused, kept

from tiled_matmul.kit.backend import select
from tiled_matmul.machine import backend
from tiled_matmul.microscope.compiled import cuda, triton


def pytest_configure(config: pytest.Config) -> None:
    # Before any test module imports Numba or Triton, which read their switches when imported.
    try:
        config.stash[BACKEND] = select()
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


@pytest.fixture(autouse=True, scope="session")
def few_settings(pytestconfig: pytest.Config) -> Iterator[None]:
    """On a GPU the tuned rung tries two settings: all of them take seconds for every new shape."""
    if pytestconfig.stash[BACKEND].name != "gpu":
        yield
        return
    from tiled_matmul.ladder import triton_tuned

    with pytest.MonkeyPatch.context() as patch:
        for name, kept in (("SPACE", (0, 6)), ("SMALL_SPACE", (0, 2))):
            space = getattr(triton_tuned, name)
            patch.setattr(triton_tuned, name, tuple(space[i] for i in kept))
        yield


@pytest.fixture(scope="session")
def compile_cache(pytestconfig: pytest.Config) -> Path:
    """The folder in which `compiled_once.kept` keeps what compilers make."""
    folder = pytestconfig.cache.mkdir("compiled")
    forget_unused(folder)
    return folder


@pytest.fixture(autouse=True, scope="session")
def compile_once(compile_cache: Path) -> Iterator[None]:
    """The processes that compile for the simulators start once for each new question."""
    start = cuda.elsewhere

    def elsewhere(module: str, given: bytes) -> Any:
        return kept(compile_cache, module.encode() + given, lambda: start(module, given))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cuda, "elsewhere", elsewhere)
        patch.setattr(triton, "elsewhere", elsewhere)
        yield


BACKEND = pytest.StashKey[backend.Backend]()
