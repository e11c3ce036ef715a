"""09.2: the cases that learners do not see."""

from __future__ import annotations

from functools import partial

from tiled_matmul.grader.spec import Call

from .judge import LIMITS, _drawn

HIDDEN = tuple(Call(draw=partial(_drawn, limit=limit)) for limit in LIMITS * 2)
