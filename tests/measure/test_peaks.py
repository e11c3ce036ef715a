"""measure/peaks.py: rates are looked up, or measured near what the table promises."""

import math

import pytest

from tiled_matmul.machine import device
from tiled_matmul.machine.device import lookup
from tiled_matmul.measure.peaks import current, measured, properties_of_gpu


def test_the_simulators_have_no_rates():
    from tiled_matmul.kit import backend

    if backend.select().on_gpu:
        assert current().sms > 0
    else:
        with pytest.raises(ValueError, match="no GPU to ask"):
            current()


@pytest.mark.gpu
def test_what_a_block_may_have_is_what_the_driver_says():
    import torch

    properties = properties_of_gpu()
    cc = torch.cuda.get_device_capability()
    assert device.shared_limit(cc) == properties.shared_memory_per_block_optin


@pytest.mark.gpu
def test_the_table_agrees_with_the_driver_about_this_gpu():
    properties = properties_of_gpu()
    peak = lookup(properties.name)
    if peak is None:
        pytest.skip(f"{properties.name} is not in the table")
    assert peak.sms == properties.multi_processor_count
    assert math.isclose(peak.l2_mb, properties.L2_cache_size / 2**20, rel_tol=0.01)


@pytest.mark.gpu
@pytest.mark.alone
def test_measured_rates_come_near_the_table_s_and_stay_below():
    here = measured()
    assert "measured on this machine" in here.source
    peak = lookup(here.name)
    if peak is None:
        pytest.skip(f"{measured.name} is not in the table")
    for key in ("fp32_tflops", "fp16_tensor_tflops", "bandwidth_gbps"):
        assert 0.4 <= getattr(here, key) / getattr(peak, key) <= 1.05, key
