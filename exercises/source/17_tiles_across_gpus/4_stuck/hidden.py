"""17.4: the cases that learners do not see."""

from __future__ import annotations

from tiled_matmul.grader.spec import Call

HIDDEN = (
    Call(([[], []],)),
    Call(([["reduce"], []],)),
    Call(([[], ["reduce"], ["reduce"]],)),
    Call(([["gather", "reduce"], ["reduce", "gather"]],)),
    Call(([["gather"], ["gather"], ["gather"]],)),
    Call(([["reduce", "reduce"], ["reduce", "reduce"], ["reduce"]],)),
    Call(([["reduce"]],)),
    Call(([["gather", "reduce"], ["gather", "gather"], ["gather"]],)),
)
