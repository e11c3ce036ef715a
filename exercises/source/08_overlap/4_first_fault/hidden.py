"""08.4: the cases that learners do not see."""

from __future__ import annotations

from functools import partial

from tiled_matmul.grader.spec import Call

from .judge import HOW, _broken, _rounds

HIDDEN = (Call(draw=_rounds),) * 6 + tuple(Call(draw=partial(_broken, how=how)) for how in HOW * 3)
