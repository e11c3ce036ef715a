"""17.3: the cases that learners do not see."""

from __future__ import annotations

from tiled_matmul.grader.spec import Call

HIDDEN = (
    Call(([],)),
    Call(([["receive", "a"], ["send", "a"]],)),
    Call(([["send", "a"], ["send", "a"], ["receive", "a"]],)),
    Call(([["send", "a"], ["wait", "b"], ["write", "a"]],)),
    Call(([["receive", "a"], ["receive", "b"], ["wait", "a"], ["read", "a"], ["read", "b"]],)),
    Call(([["wait", "a"], ["read", "a"], ["write", "a"]],)),
    Call(([["send", "a"], ["read", "a"], ["wait", "a"], ["write", "a"]],)),
    Call(([["receive", "a"], ["receive", "a"]],)),
    Call(([["receive", "a"], ["wait", "a"], ["receive", "a"], ["write", "a"], ["read", "a"]],)),
)
