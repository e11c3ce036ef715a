#!/usr/bin/env bash
# Package: numba 0.68.1, numpy 2.4.6
# Date: 2026-11-27
# Behaviour: In Numba, uint64 + int64 is int64, and so are *, // and -. In NumPy it is float64.
# Guess: Numba follows NumPy, so such an index becomes a float, and indexing with it fails.
# Seen:
#     NumPy: 5 + -1 = 4.0 (float64)
#     Numba: 5 + -1 = 4 (int64)

source "$(dirname "$0")/lib.sh"
install numba numba==0.68.1 numpy==2.4.6
judge "$(run numba <<'END'
import numpy as np
from numba import njit


@njit
def added(u, i):
    return u + i


u, i = np.uint64(5), np.int64(-1)
print(f"NumPy: {u} + {i} = {u + i} ({(u + i).dtype})")
print(f"Numba: {u} + {i} = {added(u, i)} ({added.nopython_signatures[0].return_type})")
END
)"
