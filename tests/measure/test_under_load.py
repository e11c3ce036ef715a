"""under_load.py: only the end of a run counts, and what the driver does not tell is None."""

import ctypes

import pytest

from tiled_matmul.kit.backend import select
from tiled_matmul.measure import under_load as module
from tiled_matmul.measure.under_load import Driver, Load, Sample, summary, under_load


def test_only_the_last_samples_count_and_the_median_of_them():
    early = [Sample(0.0, 1.0, 1980, 100.5, 700, ())] * 6
    late = [Sample(1.0, 2.0, clock, 690.5, 700, ("power",)) for clock in (1500, 1400, 1600)]
    samples = (*early, *late, Sample(1.5, 9.0, 1450, 690.5, 700, ("heat",)))
    load = summary(samples)
    assert load == Load(2.0, 1475, 690.5, 700, ("power",))
    assert load.samples == samples


def test_what_is_not_told_is_none():
    assert summary([Sample(0, 1.0)] * 5) == Load(1.0)
    assert summary([Sample(0, 1.0, 1410, None, 700)] * 5) == Load(1.0, 1410, None, 700, None)
    assert summary([Sample(0, 1.5, 1410)]) == Load(1.5, 1410)
    assert summary([Sample(0, 1.5, 1410, reasons=())]).reasons == ()


def test_cycles_are_kept_and_their_median_told():
    samples = [Sample(0, 1.0, cycles=cycles) for cycles in (9e6, 9e6, 9e6, 2e6, 2.2e6)]
    assert summary(samples) == Load(1.0, cycles=2.1e6) and summary(samples).samples[0].cycles == 9e6


def test_reasons_count_from_half_of_the_samples_on():
    both, one = ("heat", "power"), ("power",)
    few = [Sample(0, 1.0, reasons=why) for why in [one] * 6 + [both, both, one, one]]
    assert summary(few).reasons == both
    fewer = [Sample(0, 1.0, reasons=why) for why in [both] * 6 + [both, one, one, one]]
    assert summary(fewer).reasons == one


class Nvml:
    """Stands for the library: a GPU that does not tell its power."""

    def __init__(self, name):
        assert name == "libnvidia-ml.so.1"

    def nvmlInit_v2(self):  # noqa: N802
        return 0

    def nvmlDeviceGetHandleByUUID(self, uuid, found):  # noqa: N802
        return 0 if uuid == b"GPU-one" else 6

    def nvmlDeviceGetClockInfo(self, device, which, value):  # noqa: N802
        assert which == module.SM_CLOCK
        value._obj.value = 1455
        return 0

    def nvmlDeviceGetPowerUsage(self, device, value):  # noqa: N802
        return 3

    def nvmlDeviceGetEnforcedPowerLimit(self, device, value):  # noqa: N802
        value._obj.value = 700000
        return 0

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, device, value):  # noqa: N802
        value._obj.value = 0x1 | 0x4 | 0x20 | 0x40
        return 0


def test_the_driver_is_asked_in_its_own_units(monkeypatch):
    monkeypatch.setattr(ctypes, "CDLL", Nvml)
    assert Driver("GPU-one").ask() == (1455, None, 700.0, ("heat", "power"))
    with pytest.raises(OSError, match="does not know GPU-two"):
        Driver("GPU-two")


@pytest.mark.skipif(select().on_gpu, reason="there is a GPU")
def test_without_a_gpu_there_is_nothing_to_load():
    with pytest.raises(ValueError, match="GPU"):
        under_load(lambda: None)


@pytest.mark.gpu
@pytest.mark.alone
def test_a_product_makes_the_gpu_draw_power():
    import torch

    a = torch.randn(4096, 4096, device="cuda", dtype=torch.float16)
    load = under_load(lambda: a @ a, seconds=2.0)
    assert load.time_ms > 0 and len(load.samples) > 5
    assert 0 <= load.samples[0].at_s < load.samples[-1].at_s < 2.0
    if load.clock_mhz is not None:
        assert 100 < load.clock_mhz < 5000
    assert load.cycles is not None and 300 < load.cycles / load.time_ms / 1e3 < 4000
    if load.watts is not None and load.limit_watts is not None:
        assert 0 < load.watts < 1.2 * load.limit_watts
