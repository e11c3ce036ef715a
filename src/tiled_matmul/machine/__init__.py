"""The machine: GPU or simulators, the hardware's peak rates, and what the course still needs here.

May import: nothing of the other rooms. Front doors: `backend.select`, `device.lookup`.
"""
