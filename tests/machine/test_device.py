import math
import re

import pytest

from tiled_matmul.machine import device
from tiled_matmul.machine.device import PEAKS, lookup


@pytest.mark.parametrize(
    ("name", "known_as"),
    [
        ("Tesla T4", "T4"),
        ("NVIDIA L4", "L4"),
        ("NVIDIA L40", "L40"),
        ("NVIDIA L40S", "L40S"),
        ("NVIDIA A10", "A10"),
        ("NVIDIA A100-SXM4-40GB", "A100 SXM 40 GB"),
        ("A100-SXM4-40GB", "A100 SXM 40 GB"),
        ("NVIDIA A100-SXM4-80GB", "A100 SXM 80 GB"),
        ("NVIDIA A100-PCIE-40GB", "A100 PCIe 40 GB"),
        ("NVIDIA A100 80GB PCIe", "A100 PCIe 80 GB"),
        ("NVIDIA H100 80GB HBM3", "H100 SXM"),
        ("NVIDIA H100 PCIe", "H100 PCIe"),
        ("NVIDIA H100 NVL", "H100 NVL"),
        ("NVIDIA H200", "H200 SXM"),
        ("NVIDIA H200 NVL", "H200 NVL"),
        ("NVIDIA B200", "B200"),
        ("NVIDIA GeForce RTX 4090", "RTX 4090"),
    ],
)
def test_the_driver_s_names_are_known(name, known_as):
    assert lookup(name).name == known_as


@pytest.mark.parametrize(
    "name",
    [
        "NVIDIA A10G",
        "NVIDIA A100",
        "NVIDIA A100-SXM4-40GB MIG 1g.5gb",
        "NVIDIA A100X",
        "NVIDIA GeForce RTX 4090 Laptop GPU",
        "NVIDIA GeForce RTX 4090 D",
        "NVIDIA H100 80GB HBM3 MIG 3g.40gb",
        "NVIDIA GH200 480GB",
        "NVIDIA H20",
        "NVIDIA T400",
        "NVIDIA L20",
        "NVIDIA GB200",
        "NVIDIA",
        "",
    ],
)
def test_what_only_looks_like_a_known_gpu_is_unknown(name):
    assert lookup(name) is None


@pytest.mark.parametrize("peak", PEAKS.values(), ids=lambda peak: peak.name)
def test_rates_are_plausible_and_have_a_source(peak):
    # A multiprocessor does 64 (Turing, A100) or 128 float32 multiply-adds a cycle.
    lanes = 64 if peak.name == "T4" or peak.name.startswith("A100") else 128
    clock_ghz = peak.fp32_tflops * 1e3 / (2 * peak.sms * lanes)
    assert 1.4 <= clock_ghz <= 2.6, clock_ghz
    # And a tensor core sum is 2 to 32 times as fast; sparse rates mistaken for dense stand out.
    assert 2 <= peak.fp16_tensor_tflops / peak.fp32_tflops <= 32
    assert 300 <= peak.bandwidth_gbps <= 8000
    assert "https://" in peak.source and re.search(r"\(20\d\d\)", peak.source)


def test_sparse_rates_are_not_taken_for_dense_ones():
    # Multiply-adds a cycle and multiprocessor of the tensor cores (architecture papers), and GHz.
    for name, per_cycle, boost_ghz in (
        ("A100 SXM 80 GB", 1024, 1.41),
        ("L4", 512, 2.04),
        ("L40S", 512, 2.52),
        ("RTX 4090", 256, 2.52),
        ("H200 SXM", 2048, 1.83),
    ):
        peak = next(peak for peak in PEAKS.values() if peak.name == name)
        tflops = 2 * per_cycle * peak.sms * boost_ghz / 1e3
        assert math.isclose(tflops, peak.fp16_tensor_tflops, rel_tol=0.02), (name, tflops)


def test_the_cpu_is_named_and_counted():
    assert device.cpu_name().strip()
    assert device.cpu_threads() >= 1


@pytest.mark.parametrize(
    ("files", "cores"),
    [
        ({"cpu.max": "200000 100000\n"}, 2),
        ({"cpu.max": "150000 100000\n"}, 2),
        ({"cpu.max": "max 100000\n"}, math.inf),
        ({"cpu/cpu.cfs_quota_us": "400000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 4),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, math.inf),
        ({}, math.inf),
    ],
)
def test_a_container_s_quota_limits_the_threads(tmp_path, files, cores):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert device._cgroup_cores(tmp_path) == cores


def test_what_a_block_may_have_is_what_a_multiprocessor_has_but_for_a_kilobyte():
    from tiled_matmul.models.occupancy import LIMITS

    for cc, (_, _, most) in LIMITS.items():
        reserved = 0 if cc < (8, 0) else 1
        assert device.shared_limit(cc) == 1024 * (most - reserved)
    assert device.shared_limit("gfx942") == 65536
    with pytest.raises(ValueError, match=r"the shared memory of \(1, 3\) is not known; known are"):
        device.shared_limit((1, 3))


@pytest.mark.gpu
def test_the_driver_has_a_version():
    assert device.driver_version()[0].isdigit()
