"""What launchers ask of the GPU: a rung with asynchronous copies refuses one that has none."""

from importlib import import_module

import pytest

from tiled_matmul.kit import launch
from tiled_matmul.kit.launch import need_capability
from tiled_matmul.ladder import LADDER
from tiled_matmul.languages import NUMBA_CUDA
from tiled_matmul.machine.backend import Backend, Gpu
from tiled_matmul.microscope.cuda import watch
from tiled_matmul.problem import Problem, as_layout

T4 = Gpu("Tesla T4", (7, 5), "13.0")
NUMBA = [r for r in LADDER if r.language is NUMBA_CUDA]
COPIES = {"copy_async", "copy_async4", "copy_tile_async"}


def module_of(rung):
    return import_module(f"tiled_matmul.ladder.{rung.module}")


def on(monkeypatch, gpu):
    monkeypatch.setattr(launch, "select", lambda: Backend("gpu", "for a test", gpu))


def test_an_older_gpu_is_quoted(monkeypatch):
    on(monkeypatch, T4)
    message = r"^asynchronous copies need compute capability 8\.0; Tesla T4 has 7\.5$"
    with pytest.raises(ValueError, match=message):
        need_capability((8, 0), "asynchronous copies")


@pytest.mark.parametrize("capability", [(8, 0), (8, 6), (9, 0), (12, 0)])
def test_a_newer_gpu_is_fine(monkeypatch, capability):
    on(monkeypatch, Gpu("NVIDIA X", capability, "13.0"))
    need_capability((8, 0), "asynchronous copies")


def test_the_interpreter_has_every_capability(monkeypatch):
    monkeypatch.setattr(launch, "select", lambda: Backend("simulator", "for a test"))
    need_capability((99, 0), "wonders")
    on(monkeypatch, T4)
    with watch():  # which runs in the interpreter, whatever the GPU
        need_capability((8, 0), "asynchronous copies")


@pytest.mark.parametrize("rung", NUMBA, ids=lambda r: r.name)
def test_rungs_with_asynchronous_copies_refuse_a_t4_and_the_others_do_not(monkeypatch, rung):
    module = module_of(rung)
    launched = []
    for each in {module_of(r) for r in NUMBA}:  # some hand on to another
        monkeypatch.setattr(each, "launch", lambda *arguments: launched.append(arguments))
    place = "cuda" if launch.select().on_gpu else "cpu"
    a, b = as_layout(*Problem(9, 5, 7).inputs(device=place), rung.layout)
    on(monkeypatch, T4)
    if COPIES & set(vars(module)):
        with pytest.raises(ValueError, match=r"need compute capability 8\.0; Tesla T4 has 7\.5"):
            rung.matmul(a, b)
        assert not launched
    else:
        rung.matmul(a, b)
        assert len(launched) == 1
