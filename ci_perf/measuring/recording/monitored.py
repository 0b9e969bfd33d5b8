"""Which functions are executed, told by sys.monitoring: each costs once. Python 3.12 and newer."""

import sys
from collections.abc import Callable
from types import CodeType
from typing import Any

_NAME = "ci_perf"
# Those that Python leaves to tools: 0, 1, 2 and 5 are for debuggers, coverage and the like.
_IDS = (4, 3)


class NoMonitoringError(Exception):
    """Other tools use what sys.monitoring has for them."""


def watch_starts(note: Callable[[CodeType], None]) -> Callable[[], bool]:
    """Have `note` called for each function when it first starts, in all threads; return the end.

    Raises NoMonitoringError.
    """
    monitoring: Any = sys.monitoring  # type: ignore[attr-defined,unused-ignore]
    free = [number for number in _IDS if monitoring.get_tool(number) is None]
    if not free:
        raise NoMonitoringError("other tools use sys.monitoring")
    tool, starts = free[0], monitoring.events.PY_START

    def started(code: CodeType, offset: int) -> object:
        del offset
        note(code)
        return monitoring.DISABLE

    monitoring.use_tool_id(tool, _NAME)
    monitoring.register_callback(tool, starts, started)
    monitoring.set_events(tool, starts)

    def end() -> bool:
        monitoring.set_events(tool, monitoring.events.NO_EVENTS)
        monitoring.register_callback(tool, starts, None)
        monitoring.free_tool_id(tool)
        return False  # it has seen all threads

    return end
