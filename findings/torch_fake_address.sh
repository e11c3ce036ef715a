#!/usr/bin/env bash
# Package: torch 2.13.0, numpy 2.4.6
# Date: 2026-11-29
# Behaviour: A fake tensor, as torch.compile traces with, says that it is on the CPU (or a GPU), but
#     its storage is on "meta", and the address of each is 0. So all fake tensors share memory for
#     whoever compares addresses, and a launcher that looks at the device alone finds no reason to
#     refuse one.
# Guess: What says it is on the CPU has memory there, and two new tensors have two addresses.
# Seen:
#     device cpu, is_meta False; its storage on meta
#     address 0, of another one 0

source "$(dirname "$0")/lib.sh"
install torch torch==2.13.0 numpy==2.4.6
judge "$(run torch <<'END'
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

with FakeTensorMode():
    one, other = torch.empty(3, 4), torch.empty(3, 4)
    print(f"device {one.device}, is_meta {one.is_meta}; its storage on {one.untyped_storage().device}")
    print(f"address {one.data_ptr()}, of another one {other.data_ptr()}")
END
)"
