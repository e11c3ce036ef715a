#!/usr/bin/env bash
# Package: torch 2.13.0, numpy 2.4.6
# Date: 2026-11-27
# Behaviour: After the new switch says tf32, reading the old one raises. And after the old one said
#     "high", setting the new one for everything to ieee leaves matmul at tf32.
# Guess: Both are ways to one setting: the old one is true when the new one says tf32, and ieee for
#     everything means ieee for matmul.
# Seen:
#     fp32_precision = tf32, then allow_tf32: RuntimeError
#     precision high, then everything = ieee: matmul tf32

source "$(dirname "$0")/lib.sh"
install torch torch==2.13.0 numpy==2.4.6
judge "$(
    run torch <<'END'
import torch

matmul = torch.backends.cuda.matmul
matmul.fp32_precision = "tf32"
try:
    read = matmul.allow_tf32
except RuntimeError as error:
    read = type(error).__name__
print(f"fp32_precision = tf32, then allow_tf32: {read}")
END
    run torch <<'END'
import torch

torch.set_float32_matmul_precision("high")
torch.backends.fp32_precision = "ieee"
found = torch.backends.cuda.matmul.fp32_precision
print(f"precision high, then everything = ieee: matmul {found}")
END
)"
