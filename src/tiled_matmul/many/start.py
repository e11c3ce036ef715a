"""torchrun, which ends when the process that started it does: `python -m tiled_matmul.many.start`.

Its arguments are torchrun's. It ends its ranks itself.
"""

import ctypes
import signal
import sys

from torch.distributed.run import main

END_WITH_PARENT = 1  # PR_SET_PDEATHSIG of prctl

if __name__ == "__main__":
    ctypes.CDLL(None).prctl(END_WITH_PARENT, signal.SIGTERM)
    main(sys.argv[1:])
