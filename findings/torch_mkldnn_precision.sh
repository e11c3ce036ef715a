#!/usr/bin/env bash
# Package: torch 2.13.0, numpy 2.4.6
# Date: 2026-11-27
# Behaviour: Setting torch.backends.mkldnn.fp32_precision sets torch.backends.fp32_precision, the
#     switch of every backend. So it also lets CUDA's matmul use TF32.
# Guess: It sets the precision of oneDNN, which computes on the CPU.
# Seen:
#     before: everything none, mkldnn none, CUDA's matmul none
#     after mkldnn = tf32: everything tf32, mkldnn tf32, CUDA's matmul tf32

source "$(dirname "$0")/lib.sh"
install torch torch==2.13.0 numpy==2.4.6
judge "$(run torch <<'END'
from torch import backends


def show(when):
    matmul = backends.cuda.matmul.fp32_precision
    said = f"everything {backends.fp32_precision}, mkldnn {backends.mkldnn.fp32_precision}"
    print(f"{when}: {said}, CUDA's matmul {matmul}")


show("before")
backends.mkldnn.fp32_precision = "tf32"
show("after mkldnn = tf32")
END
)"
