"""What rungs share: checked arguments, launches, intrinsics, unrolled loops, descriptors.

May import: microscope, models, machine. Front doors: `launch.launch`, `programs.launch`.
"""
