"""A GPU for `measure/bench.py` where there is none: CPU tensors, and a clock that stands still."""

import pytest

from tiled_matmul.measure import bench, clock, provenance
from tiled_matmul.problem import Problem


class StandInClock:
    """Makes the calls that a GPU's clock would time; a call takes `once_ms`, whatever is called."""

    once_ms = 0.05

    def __init__(self, launches=1, graphs=False):
        self.calls = 1 if graphs else launches

    def sample(self, name, call):
        for _ in range(self.calls):
            call()
        return self.once_ms


@pytest.fixture
def stand_in_gpu(monkeypatch):
    """Let bench go a GPU's way on CPU tensors."""
    import torch

    def cpu_inputs(self, shapes, seed, kind):
        return tuple(torch.randn(shape, generator=torch.manual_seed(seed)) for shape in shapes)

    monkeypatch.setattr(Problem, "_cuda_inputs", cpu_inputs)
    for module in (bench, clock):
        monkeypatch.setattr(module, "need_gpu", lambda: None)
        monkeypatch.setattr(module, "finish", lambda: None)
    monkeypatch.setattr(clock, "_GpuClock", StandInClock)
    monkeypatch.setattr(provenance, "machine", lambda where, threads: ("NVIDIA X", "580"))
    monkeypatch.setattr(provenance, "versions", lambda where: {"python": "3"})
    return monkeypatch
