"""Facts about hardware: peak rates of known GPUs, each with its source, and this machine's CPU.

The rates are those of the vendor's datasheet at boost clock: dense (no sparsity), float32 on CUDA
cores, float16 on tensor cores with a float32 accumulator. If a datasheet prints only the sparse
rate, half of it stands here, as its footnote says. No kernel reaches these rates; they are roofs.
"""

from __future__ import annotations

import ctypes
import functools
import math
import os
import platform
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Peak:
    """The peak rates of one GPU.

    `fp32_tflops` and `fp16_tensor_tflops` are in 10¹² FLOP/s, `bandwidth_gbps` is in 10⁹ bytes/s
    between the chip and its memory (reads and writes together), `l2_mb` is in 2²⁰ bytes, and `sms`
    is the number of streaming multiprocessors. `source` cites the datasheet.
    """

    name: str
    fp32_tflops: float
    fp16_tensor_tflops: float
    bandwidth_gbps: float
    l2_mb: float
    sms: int
    source: str


_PDF = "https://www.nvidia.com/content/dam/en-zz/Solutions/Data-Center"
_RESOURCES = "https://resources.nvidia.com"
_ADA = (
    "NVIDIA Ada GPU Architecture whitepaper (2022), "
    "https://images.nvidia.com/aem-dam/Solutions/geforce/ada/nvidia-ada-gpu-architecture.pdf"
)
_T4 = (
    "NVIDIA T4 datasheet (2019), "
    f"{_PDF}/tesla-t4/t4-tensor-core-datasheet-951643.pdf; memory, SMs and L2: "
    "NVIDIA Turing GPU Architecture whitepaper WP-09183 (2018)"
)
_L4 = (
    "NVIDIA L4 datasheet (2023), "
    f"{_RESOURCES}/en-us-data-center-overview/l4-gpu-datasheet, half of its sparse 242 TFLOPS; "
    f"SMs and L2: {_ADA}"
)
_L40 = (
    "NVIDIA L40 datasheet (2022), "
    "https://images.nvidia.com/content/Solutions/data-center/vgpu-L40-datasheet.pdf; "
    f"SMs and L2: {_ADA}"
)
_L40S = (
    f"NVIDIA L40S datasheet (2023), {_RESOURCES}/en-us-l40s/l40s-datasheet-28413; "
    f"SMs and L2: {_ADA}"
)
_A10 = (
    f"NVIDIA A10 datasheet (2021), {_PDF}/a10/pdf/a10-datasheet.pdf; SMs and L2: "
    "NVIDIA Ampere GA102 GPU Architecture whitepaper (2021)"
)
_A100 = (
    "NVIDIA A100 datasheet (2021), "
    f"{_PDF}/a100/pdf/nvidia-a100-datasheet-us-nvidia-1758950-r4-web.pdf; SMs and L2: "
    "NVIDIA A100 Tensor Core GPU Architecture whitepaper (2020)"
)
_H100 = (
    "NVIDIA H100 datasheet (2023), "
    f"{_RESOURCES}/en-us-tensor-core/nvidia-tensor-core-gpu-datasheet, half of its sparse rate; "
    "SMs and L2: NVIDIA H100 Tensor Core GPU Architecture whitepaper (2022)"
)
_H200 = (
    "NVIDIA H200 datasheet (2023), "
    f"{_RESOURCES}/en-us-data-center-overview-mc/en-us-data-center-overview/hpc-datasheet-sc23-h200"
    ", half of its sparse rate; SMs and L2: what the driver reports"
)
_B200 = (
    "NVIDIA Blackwell datasheet, HGX B200 column (2025), "
    f"{_RESOURCES}/en-us-blackwell-architecture, half of its sparse 4.5 PFLOPS; "
    "SMs and L2: what the driver reports, https://github.com/pytorch/ao/pull/4002"
)

# The keys are the driver's names without "NVIDIA", "Tesla" and "GeForce".
PEAKS: dict[str, Peak] = {
    "T4": Peak("T4", 8.1, 65, 320, 4, 40, _T4),
    "L4": Peak("L4", 30.3, 121, 300, 48, 58, _L4),
    "L40": Peak("L40", 90.5, 181.05, 864, 96, 142, _L40),
    "L40S": Peak("L40S", 91.6, 362.05, 864, 96, 142, _L40S),
    "A10": Peak("A10", 31.2, 125, 600, 6, 72, _A10),
    "A100-SXM4-40GB": Peak("A100 SXM 40 GB", 19.5, 312, 1555, 40, 108, _A100),
    "A100-PCIE-40GB": Peak("A100 PCIe 40 GB", 19.5, 312, 1555, 40, 108, _A100),
    "A100-SXM4-80GB": Peak("A100 SXM 80 GB", 19.5, 312, 2039, 40, 108, _A100),
    "A100 80GB PCIe": Peak("A100 PCIe 80 GB", 19.5, 312, 1935, 40, 108, _A100),
    "RTX 4090": Peak("RTX 4090", 82.6, 165.2, 1008, 72, 128, _ADA),
    "H100 80GB HBM3": Peak("H100 SXM", 67, 989.5, 3350, 50, 132, _H100),
    "H100 PCIe": Peak("H100 PCIe", 51, 756.5, 2000, 50, 114, _H100),
    "H100 NVL": Peak("H100 NVL", 60, 835.5, 3900, 50, 132, _H100),
    "H200": Peak("H200 SXM", 67, 989.5, 4800, 60, 132, _H200),
    "H200 NVL": Peak("H200 NVL", 60, 835.5, 4800, 60, 132, _H200),
    "B200": Peak("B200", 75, 2250, 7700, 126.5, 148, _B200),
}


# Maximum shared memory of one block, in KiB. NVIDIA, CUDA C++ Programming Guide, table "Technical
# Specifications per Compute Capability"; AMD, "CDNA3 Instruction Set Architecture", 2.4.
BLOCK_SHARED_KIB: dict[tuple[int, int] | str, int] = {
    (7, 0): 96,
    (7, 5): 64,
    (8, 0): 163,
    (8, 6): 99,
    (8, 7): 163,
    (8, 9): 99,
    (9, 0): 227,
    (10, 0): 227,
    (10, 3): 227,
    (12, 0): 99,
    (12, 1): 99,
    "gfx942": 64,
}


def shared_limit(cc: tuple[int, int] | str) -> int:
    """Return the maximum shared memory of one block, in bytes, on a GPU of this kind.

    `cc` is a compute capability such as (9, 0), or an AMD GPU's name. Raises ValueError for an
    unknown one.
    """
    if cc not in BLOCK_SHARED_KIB:
        known = ", ".join(map(str, BLOCK_SHARED_KIB))
        raise ValueError(f"the shared memory of {cc} is not known; known are {known}")
    return 1024 * BLOCK_SHARED_KIB[cc]


def _normalised(name: str) -> str:
    words = [word for word in name.split() if word.lower() not in ("nvidia", "tesla", "geforce")]
    return " ".join(words).lower()


_BY_NAME = {_normalised(name): peak for name, peak in PEAKS.items()}


def lookup(name: str) -> Peak | None:
    """Return the peak rates of the GPU that the driver calls `name`, or None if it is unknown.

    The whole name must match: "NVIDIA A10" is not "NVIDIA A10G", a desktop's RTX 4090 is not a
    laptop's, and a MIG slice is not the whole GPU. A wrong roof is worse than a measured one.
    """
    return _BY_NAME.get(_normalised(name))


@functools.cache
def cpu_name() -> str:
    """Return the name of this machine's processor, such as "AMD EPYC 9554"."""
    text = ""
    if Path("/proc/cpuinfo").exists():
        match = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.M)
        text = match[1] if match else ""
    elif platform.system() == "Darwin":
        command = ["sysctl", "-n", "machdep.cpu.brand_string"]
        text = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    return " ".join((text or platform.processor() or platform.machine() or "unknown").split())


def cpu_threads() -> int:
    """Return how many cores this process may use, by its affinity and its container's quota."""
    cores = os.cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    return max(1, min(cores, _cgroup_cores()))


def _cgroup_cores(root: Path = Path("/sys/fs/cgroup")) -> int | float:
    """Return the container's CPU quota in cores, infinite without a limit."""
    try:
        if (root / "cpu.max").exists():
            quota, period = (root / "cpu.max").read_text().split()
        else:
            quota, period = (
                (root / "cpu" / f"cpu.cfs_{name}_us").read_text() for name in ("quota", "period")
            )
        return math.ceil(int(quota) / int(period)) if int(quota) > 0 else math.inf
    except (OSError, ValueError):  # no cgroup, or the quota is "max"
        return math.inf


@functools.cache
def driver_version() -> str:
    """Return the NVIDIA driver's version, such as "580.95.05", or "" without a driver."""
    try:
        nvml = ctypes.CDLL("libnvidia-ml.so.1")
        text = ctypes.create_string_buffer(96)
        if nvml.nvmlInit_v2() == 0 and nvml.nvmlSystemGetDriverVersion(text, len(text)) == 0:
            return text.value.decode()
    except (OSError, AttributeError):
        pass
    try:
        text = Path("/proc/driver/nvidia/version").read_text()
    except OSError:
        return ""
    match = re.search(r"\s(\d+\.\d+(?:\.\d+)?)\s", text)
    return match[1] if match else ""


def is_out_of_memory(error: Exception) -> bool:
    """Return whether this is the error of numpy or torch for too little memory."""
    # torch's own class derives from RuntimeError, and torch may not be imported.
    return isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"
