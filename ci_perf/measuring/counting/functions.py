"""Count the calls of the repository's functions, in the thread that runs the step.

Other threads, such as those that load data ahead, have no step to which their calls belong.
"""

import contextlib
import sys
from collections.abc import Iterator
from types import FrameType

from ci_perf.measuring.counting.author import AuthorCode
from ci_perf.measuring.counting.tables import Counted
from ci_perf.model.step_counts import AuthorFunction


@contextlib.contextmanager
def watch(code: AuthorCode) -> Iterator[Counted[AuthorFunction]]:
    """Within, count calls. A generator that goes on counts as called, as profilers see it."""
    counted: Counted[AuthorFunction] = Counted()

    def called(frame: FrameType, event: str, argument: object) -> None:
        del argument
        if event == "call" and (function := code.function(frame.f_code)):
            counted.note(function)

    before = sys.getprofile()
    sys.setprofile(called)
    try:
        yield counted
    finally:
        sys.setprofile(before)
