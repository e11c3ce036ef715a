"""An interpreter for kernels in Gluon: barriers, asynchronous copies and products, on the CPU.

`trace_gluon` runs a kernel and reports what is not ordered: a copy into a stage that is still read,
a product of a stage that is still filled, a wait for the wrong phase. The kernel's own Python runs,
once for each block of threads and each role; what Gluon's functions do is `names.py`'s.

May import: models, machine, and the rest of the microscope.
"""

from tiled_matmul.microscope.gluon.findings import GluonFinding
from tiled_matmul.microscope.gluon.names import Unknown, is_gluon
from tiled_matmul.microscope.gluon.timeline import timeline
from tiled_matmul.microscope.gluon.trace import GluonError, GluonTrace, collect, launch, trace_gluon

__all__ = [
    "GluonError",
    "GluonFinding",
    "GluonTrace",
    "Unknown",
    "collect",
    "is_gluon",
    "launch",
    "timeline",
    "trace_gluon",
]
