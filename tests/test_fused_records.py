"""models/epilogue.py and measure/fused.py: what is predicted, and what a file may hold."""

from dataclasses import asdict, replace

import pytest
from records_example import RUN, entry

from tiled_matmul.measure import fused
from tiled_matmul.measure import records as store
from tiled_matmul.measure.fused import Case, Taken
from tiled_matmul.models.epilogue import Layer


def test_bytes_of_a_layer():
    layer = Layer(100, 50, 10, activation=True, residual=True)
    c = 2 * 100 * 50
    product = 2 * (100 * 10 + 10 * 50) + c
    assert layer.product_bytes == product
    assert layer.separate_bytes == product + 5 * c
    assert layer.two_kernels_bytes == product + 3 * c
    assert layer.fused_bytes == product + c
    plain = replace(layer, activation=False, residual=False)
    assert plain.separate_bytes == plain.two_kernels_bytes == plain.fused_bytes == product


def test_predicted_times():
    layer = Layer(16384, 4096, 64, activation=True)
    separate, together, one = layer.predicted_ms(700, 4000)
    assert separate == together == pytest.approx(layer.separate_bytes / 4e9)
    assert one == pytest.approx(layer.fused_bytes / 4e9)
    long = Layer(8192, 8192, 8192, activation=True)
    separate, _, one = long.predicted_ms(700, 4000)
    assert one == pytest.approx(2 * 8192**3 / 7e11)
    assert separate - one == pytest.approx(2 * long.c_bytes / 4e9)


def test_every_layer_is_measured_once():
    found = list(fused.cases())
    assert len(found) == len(set(found)) > 50
    assert all(case.layer.flops > 0 for case in found)


def layer(case, ms, **changes):
    """Return what is stored of a layer."""
    return entry({"of": "layer", **asdict(case)} | changes, {"ms": ms, "spreads": {"torch": 0.01}})


def test_a_file_is_read_as_it_was_written(tmp_path):
    case, ms = Case(64, 32, 16, "GELU + residual"), {"torch": 0.5, "triton_fused": 0.25}
    path = tmp_path / "gpu.json"
    more = [
        entry({"of": "bytes", "name": "64×32×16"}, {"kernels": [{"read": 3}]}),
        entry({"of": "compiled", "name": "a layer"}, ms),
    ]
    store.save(path, fused.SUITE, [layer(case, ms), *more])
    others, read = fused.load(path)
    assert read == [Taken(case, ms, {"torch": 0.01})] and read[0].ratio() == 2
    assert others.pop("provenance") == RUN
    assert others == {
        "blocks": {}, "bytes": {"64×32×16": [{"read": 3}]}, "compiled": {"a layer": ms}
    }  # fmt: skip
    times = {"torch": 1}, {"torch": 0, "triton_fused": 1}
    for wrong in (layer(case, ms, steps="tanh"), *(layer(case, each) for each in times)):
        store.save(path, fused.SUITE, [wrong])
        with pytest.raises(ValueError, match="gpu.json"):
            fused.load(path)
