"""torchrun, which ends when the process that started it does: `launch` runs this file.

Its arguments are torchrun's. It ends its ranks itself, and they end with it.
"""

import ctypes
import os
import signal
import sys

END_WITH_PARENT = 1  # PR_SET_PDEATHSIG of prctl
LAUNCHER, TORCHRUN = "TILED_MATMUL_LAUNCHER", "TILED_MATMUL_TORCHRUN"  # hold process numbers


def end_with(parent: str, number: signal.Signals) -> None:
    """Let this process get a signal when its parent ends, whose number stands in a variable.

    Exits at once if that has ended before.
    """
    ctypes.CDLL(None).prctl(END_WITH_PARENT, number)
    if os.environ.get(parent) not in (None, str(os.getppid())):
        raise SystemExit(f"the process that started this one, {os.environ[parent]}, has ended")


if __name__ == "__main__":
    end_with(LAUNCHER, signal.SIGTERM)
    os.environ[TORCHRUN] = str(os.getpid())
    from torch.distributed.run import main

    main(sys.argv[1:])
