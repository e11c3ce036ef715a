"""What compilers make of a kernel: PTX, SASS and TTGIR, for any GPU and without one."""
