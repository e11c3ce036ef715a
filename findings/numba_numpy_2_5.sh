#!/usr/bin/env bash
# Package: numba-cuda 0.30.4, numba 0.68.1, numpy 2.5.2 (Python 3.12 or newer)
# Date: 2026-11-27
# Behaviour: numba-cuda 0.30.4 installs with numpy 2.5, pip check is content, and no kernel compiles.
# Guess: What pip resolves and pip check accepts works together, or fails at import.
# Seen:
#     pip check: No broken requirements found.
#     import: no error
#     compiling: AttributeError: module 'numpy' has no attribute 'row_stack'

for python in "${PYTHON:-python3}" python3.14 python3.13 python3.12; do
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 12))' 2>/dev/null && PYTHON=$python && break
done
source "$(dirname "$0")/lib.sh"
install numba "numba-cuda[cu13]==0.30.4" numba==0.68.1 numpy==2.5.2
judge "pip check: $("$folder/numba/bin/python" -m pip check)
$(run numba <<'END'
from numba import cuda, float32

print("import: no error")


def kernel(x):
    x[cuda.grid(1)] = 1


try:
    cuda.compile_ptx(kernel, (float32[::1],), cc=(9, 0))
    print("compiling: no error")
except Exception as error:
    print(f"compiling: {type(error).__name__}: {str(error).splitlines()[0]}")
END
)"
