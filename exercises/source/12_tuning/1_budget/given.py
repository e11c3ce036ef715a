BYTES = 2  # of a 16-bit float
WARP = 32  # threads
SHARED = 227 * 1024  # bytes of shared memory that a block may have
REGISTERS = 65_536  # of a multiprocessor
MOST = 255  # registers of a thread
