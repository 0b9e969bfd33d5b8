"""Count and time the repository's functions and what they call in libraries, by cProfile.

Only the thread that runs the step is profiled. Torch is left out, but for its DataLoader: operators
are counted and timed by themselves.
"""

import cProfile
import gc
import re
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from types import CodeType
from typing import Final

from ci_perf.features.explain.worker.origins import AuthorCode, is_part
from ci_perf.measuring import module_files
from ci_perf.model.explanation import MOST_CALLEES, AuthorFunction, Callee, FunctionUse
from ci_perf.system.linux import short

_BUILTIN: Final = re.compile(
    r"<(?:built-in (?:method|function) )?(?:builtins\.)?(?P<name>[\w.]+)(?: of .*)?>"
    r"|<method '(?P<method>[^']+)' of '(?P<owner>[^']+)' objects>"
)
_LEFT_OUT: Final = ("torch.", "ci_perf.")
_LOADER: Final = "torch.utils.data."
_IMPORTS: Final = "importlib._bootstrap"
_CALLS: Final = 1_000
_TRIALS: Final = 5
_CALLED: Final = "sys.getrecursionlimit"

Name = AuthorFunction | str
"""A function of the repository, or the name of another one: "json.dumps", "str.join"."""


@dataclass(slots=True)
class Node:
    """One function in one step; ``callees`` has calls and seconds of what it calls itself.

    ``own_s`` is without its callees, ``whole_s`` with them.
    """

    calls: int = 0
    own_s: float = 0.0
    whole_s: float = 0.0
    callees: dict[Name, tuple[int, float]] = field(default_factory=dict)


class Graph:
    """Who calls whom in one step, with times."""

    def __init__(self, profiler: cProfile.Profile, code: AuthorCode, event_s: float) -> None:
        """Take off `event_s`, which the profiler adds to the caller's own time with each call."""
        self.nodes: defaultdict[Name, Node] = defaultdict(Node)
        self._library_s: dict[str, float] = {}
        modules = {file: name for name, file in module_files.files(sys.modules)}
        entries = profiler.getstats()
        for entry in entries:  # functions are known before their parts
            code.function_around(entry.code)
        for entry in entries:
            name = _name(entry.code, code, modules)
            node = self.nodes[name]
            node.calls += 0 if is_part(entry.code) else entry.callcount
            node.whole_s += entry.totaltime
            callees = entry.calls or ()
            events = sum(each.callcount for each in callees)
            node.own_s += max(entry.inlinetime - events * event_s, 0.0)
            for each in callees:
                called = _name(each.code, code, modules)
                calls, seconds = node.callees.get(called, (0, 0.0))
                node.callees[called] = calls + each.callcount, seconds + each.totaltime

    def function_s(self, name: Name) -> float:
        """Return the seconds of a function and of the libraries that it calls."""
        node = self.nodes[name]
        return node.own_s + sum(self.callee_s(name, callee) for callee in node.callees)

    def callee_s(self, caller: Name, callee: Name) -> float:
        """Return what a library takes for one caller, without the repository's functions.

        Of a function with several callers, each has the part that its calls took.
        """
        _, seconds = self.nodes[caller].callees.get(callee, (0, 0.0))
        if not isinstance(callee, str) or _is_torch(callee) or not seconds:
            return 0.0
        if callee not in self._library_s:
            self._library_s[callee] = 0.0  # one that calls itself counts once
            self._library_s[callee] = self.function_s(callee)
        return self._library_s[callee] * seconds / max(self.nodes[callee].whole_s, seconds)


def profile_step(run: Callable[[], object], code: AuthorCode, *, event_s: float = 0.0) -> Graph:
    """Run a step, and return who called whom.

    The garbage collector is off meanwhile: what it calls, no line of the program does.
    """
    profiler = cProfile.Profile()
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        with profiler:
            run()
    finally:
        if was_enabled:
            gc.enable()
    return Graph(profiler, code, event_s)


def measure_event_s() -> float:
    """Return what the profiler adds to the own time of a function with each call that it makes."""
    here = AuthorCode("/nowhere")

    def unwatched_s() -> float:
        start = time.perf_counter()
        _call_often()
        return time.perf_counter() - start

    def watched_s() -> float:
        nodes = profile_step(_call_often, here).nodes
        return sum(each.own_s for each in nodes.values() if _CALLED in each.callees)

    watched = min(watched_s() for _ in range(_TRIALS))
    return max(watched - min(unwatched_s() for _ in range(_TRIALS)), 0.0) / _CALLS


def _call_often() -> None:
    for _ in range(_CALLS):
        sys.getrecursionlimit()


def time_functions(
    uses: Sequence[FunctionUse], steps: Sequence[Graph], data: Graph
) -> Iterator[FunctionUse]:
    """Yield functions with their times: 25 % quantiles over `steps`.

    `data` has what the phase "data" calls.
    """
    for use in uses:
        name = use.function
        yield FunctionUse(
            function=name,
            calls=use.calls,
            phase="data" if name in data.nodes else "",
            own_s=quartile([step.function_s(name) for step in steps]),
            callees=tuple(
                Callee(
                    name=each.name,
                    calls=each.calls,
                    seconds=quartile([step.callee_s(name, each.name) for step in steps]),
                )
                for each in use.callees
            ),
        )


def list_callees(node: Node) -> dict[str, int]:
    """Return the calls of libraries that a function makes; the most called where it makes many."""
    calls = {
        name: calls
        for name, (calls, _) in node.callees.items()
        if isinstance(name, str) and name and not name.startswith((*_LEFT_OUT, _IMPORTS))
    }
    return dict(sorted(calls.items(), key=lambda item: (-item[1], item[0]))[:MOST_CALLEES])


def quartile(values: Sequence[float]) -> float:
    """Return the 25 % quantile of at least one value: a time that was disturbed lies above it."""
    return sorted(values)[(len(values) - 1) // 4]


def _name(its: CodeType | str, code: AuthorCode, modules: dict[str, str]) -> Name:
    """Name a function; empty for what no module defines."""
    if isinstance(its, str):
        parts = _BUILTIN.fullmatch(its)
        if parts is None:
            return ""
        method = f"{parts['owner']}.{parts['method']}" if parts["method"] else parts["name"]
        return short(method.removeprefix("builtins."))
    if function := code.function_around(its):
        return function
    module = modules.get(its.co_filename, "")
    if its.co_filename.startswith("<frozen "):
        module = its.co_filename[len("<frozen ") : -1]
    return short(f"{module}.{its.co_qualname.removesuffix('.__init__')}") if module else ""


def _is_torch(name: str) -> bool:
    return name.startswith("torch.") and not name.startswith(_LOADER)
