"""Code shared by the rungs: argument checks, launches, intrinsics, unrolled loops, descriptors.

May import: microscope, models, machine. Front doors: `launch.launch`, `programs.launch`.
"""
