"""08.1: the cases that learners do not see."""

from .._shared import HIDDEN

__all__ = ["HIDDEN"]
