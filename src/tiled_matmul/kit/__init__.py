"""What rungs are made of: argument checks, launches, intrinsics, unrolled loops, descriptors.

May import: microscope, models, machine. Front doors: `launch.launch`, `programs.launch`.
"""
