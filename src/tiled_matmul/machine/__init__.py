"""Which machine is this: a GPU or the simulators, what is known of the hardware, what is missing.

May import: nothing of the other rooms. Front doors: `backend.select`, `device.lookup`.
"""
