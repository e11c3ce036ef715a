#!/usr/bin/env bash
# Package: cuda-bindings 13.5.0
# Date: 2026-11-29
# Behaviour: The driver wants a tensor map at a multiple of 64 bytes, and `driver.CUtensorMap` is the
#     object for one. Its memory is the interpreter's own, so it begins at a multiple of 16 bytes:
#     of 200 objects, most are not where the driver wants them. Whoever passes `getPtr()` on has to
#     copy the map to memory that is.
# Guess: An object made for a type that has an alignment has it.
# Seen:
#     all at multiples of 16: True; all at multiples of 64: False
#     of 200 objects, more than 50 are not at a multiple of 64: True

source "$(dirname "$0")/lib.sh"
install cuda cuda-bindings==13.5.0
judge "$(run cuda <<'END'
from cuda.bindings import driver

maps = [driver.CUtensorMap() for _ in range(200)]  # all kept, so no address is used twice
places = [each.getPtr() for each in maps]
every = {edge: all(place % edge == 0 for place in places) for edge in (16, 64)}
print(f"all at multiples of 16: {every[16]}; all at multiples of 64: {every[64]}")
wrong = sum(place % 64 != 0 for place in places)
print(f"of 200 objects, more than 50 are not at a multiple of 64: {wrong > 50}")
END
)"
