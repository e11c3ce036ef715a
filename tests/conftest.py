"""Tests run on the back end that the course selects: the GPU, or the simulators.

Where there is no GPU, tests marked `gpu` are deselected. With `TILED_MATMUL_BACKEND=gpu`
(`make test-gpu`) a machine with no usable GPU is an error. With `TILED_MATMUL_LONG=0` (`make test`)
those marked `long`, `browser` and `cluster` are deselected, and of those marked `sample(n)` all but
one in n. The file that `TILED_MATMUL_NOT_RUN` names receives a line that counts the tests that did
not run, by reason: `make test` ends with it.
"""

import os
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tiled_matmul.kit.backend import select
from tiled_matmul.machine import backend
from tiled_matmul.microscope.compiled import kept


def pytest_configure(config: pytest.Config) -> None:
    # Before any test module imports Numba or Triton, which read their switches when imported.
    try:
        config.stash[BACKEND] = select()
    except backend.BackendError as error:
        raise pytest.UsageError(str(error)) from None
    os.environ.pop("TILED_MATMUL_BUDGET_S", None)  # tests of the clock choose their own budgets
    if kept.FOLDER not in os.environ and hasattr(config, "cache"):  # not -p no:cacheprovider
        os.environ[kept.FOLDER] = str(config.cache.mkdir("compiled"))


def pytest_report_header(config: pytest.Config) -> str:
    chosen = config.stash[BACKEND]
    return f"back end: {chosen.name} ({chosen.reason})"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left = Counter()
    for item in beyond_the_sample(items):
        item.add_marker("long")
    for marker, reason in left_out(config).items():
        without = [item for item in items if item.get_closest_marker(marker)]
        left[reason] = len(without)
        if without:
            config.hook.pytest_deselected(items=without)
            items[:] = [item for item in items if not item.get_closest_marker(marker)]
    config.stash[LEFT_OUT] = left


def beyond_the_sample(items: list[pytest.Item]) -> list[pytest.Item]:
    """Return all cases but one in n, and at least one, of each test marked `sample(n)`.

    The draw goes by their names, so that a new case leaves most of the others as they were.
    """
    tests: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("sample"):
            tests.setdefault(item.nodeid.partition("[")[0], []).append(item)
    beyond = []
    for cases in tests.values():
        (n,) = cases[0].get_closest_marker("sample").args
        cases.sort(key=lambda item: zlib.crc32(item.nodeid.encode()))
        beyond += cases[-(-len(cases) // n) :]
    return beyond


def left_out(config: pytest.Config) -> dict[str, str]:
    """Return the markers of tests that do not run, and why."""
    if config.stash[BACKEND].name == "gpu":
        import torch

        out = {"gpus": "needs two GPUs"} if torch.cuda.device_count() < 2 else {}
    else:
        out = {"gpu": "no GPU"}
    if os.environ.get("TILED_MATMUL_LONG") == "0":
        out |= {"long": "make test-long", "browser": "make test-browser"}
        out |= {"cluster": "make test-cluster"}
    return out


def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left_out"] = dict(session.config.stash.get(LEFT_OUT, {}))


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """With workers, each has collected every test, and the process that started them none."""
    node.config.stash[LEFT_OUT] = Counter(getattr(node, "workeroutput", {}).get("left_out", {}))


def pytest_terminal_summary(terminalreporter: Any, exitstatus: int, config: pytest.Config) -> None:
    file = os.environ.get("TILED_MATMUL_NOT_RUN")
    if not file or exitstatus:
        return
    skipped = terminalreporter.stats.get("skipped", [])
    reasons = Counter(str(report.longrepr[2]).removeprefix("Skipped: ") for report in skipped)
    counts = config.stash.get(LEFT_OUT, Counter()) + reasons
    listed = ", ".join(f"{count:,} ({reason})" for reason, count in counts.most_common())
    line = f"Not run: {listed}. Every other test passed." if listed else "Every test passed."
    Path(file).write_text(f"{line}\n", encoding="utf-8")


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


LEFT_OUT = pytest.StashKey[Counter]()
BACKEND = pytest.StashKey[backend.Backend]()
