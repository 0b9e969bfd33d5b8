"""A finding of the doctor: its code, its level, what is the case and what to do."""

from enum import Enum

from ci_perf.model.base import Name, Struct, Text


class Level(Enum):
    """How much it matters, worst first: the order of declaration is the sort order."""

    PROBLEM = "problem"
    WARNING = "warning"
    OK = "ok"


class Finding(Struct, frozen=True, kw_only=True):
    """What was found, and what to do about it; ``next_step`` is empty when all is well."""

    code: Name
    level: Level
    what: Text
    next_step: Text = ""


def problem(code: str, what: str, next_step: str) -> Finding:
    """Make a finding of the worst level."""
    return Finding(code=code, level=Level.PROBLEM, what=what, next_step=next_step)
