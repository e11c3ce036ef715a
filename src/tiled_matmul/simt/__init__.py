"""What the 32 threads of a warp do together."""
