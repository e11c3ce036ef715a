"""Compile kernels for any GPU, without one, and inspect their PTX, SASS and TTGIR."""
