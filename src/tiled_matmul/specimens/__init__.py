"""See: small kernels whose accesses the hardware has counted, to hold the microscope against.

May import: the ladder and what lies below it. Front door: `kernels.CASES`.
"""
