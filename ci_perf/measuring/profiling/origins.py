"""Tell which function and line an operator comes from, the backward pass included.

An operator of the backward pass belongs to the function whose operator made its node in autograd's
graph: both know the node's sequence number. What autograd calls in the author's own Python (the
backward of a function, a hook, a checkpoint that computes again) belongs to that.
"""

import threading
from types import CodeType, FrameType
from typing import Any

from ci_perf.measuring.profiling.author import AuthorCode
from ci_perf.model.step_profile import AuthorFunction

_Place = tuple[AuthorFunction | None, int]


class Origins:
    """Knows where operators come from; forget what a step has left before the next one."""

    def __init__(self, code: AuthorCode) -> None:
        """To be called once torch has been imported."""
        from torch.autograd import graph

        self._code = code
        self._thread = threading.get_ident()
        engine = getattr(graph, "_engine_run_backward", None)
        self._engine: CodeType | None = getattr(engine, "__code__", None)
        self._first = _next_sequence_number()
        self._forward: dict[int, _Place] = {}
        # A step has many nodes, and few places.
        self._places: dict[_Place, _Place] = {}

    def forget(self) -> None:
        """Forget the nodes of a step: their backward pass is over."""
        self._first = _next_sequence_number()
        self._forward.clear()

    def of(self, frame: FrameType | None) -> tuple[AuthorFunction | None, int, bool]:
        """Return the function and the line of what is being called, and whether it is backward."""
        function, line, is_behind = self._code.caller(frame, self._engine)
        node = _current_node()
        if node is None or (function is not None and not is_behind):
            self._remember((function, line))
        elif known := self._forward.get(node._sequence_nr()):  # noqa: SLF001
            function, line = known
        return function, line, node is not None

    def _remember(self, place: _Place) -> None:
        """Keep whose node is the newest one: autograd makes it before it calls the operator.

        An operator without a node finds that of an earlier one, which keeps its own place. Each
        thread counts its nodes for itself.
        """
        number = _next_sequence_number() - 1
        if number >= self._first and threading.get_ident() == self._thread:
            self._forward.setdefault(number, self._places.setdefault(place, place))


def _next_sequence_number() -> int:
    import torch

    number: int = torch.autograd._get_sequence_nr()  # noqa: SLF001
    return number


def _current_node() -> Any:  # noqa: ANN401  torch is untyped
    import torch

    return torch._C._current_autograd_node()  # noqa: SLF001
