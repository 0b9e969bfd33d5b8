"""Tell which code is the repository's, and which function and line of it an operator comes from.

An operator of the backward pass belongs to the function whose operator made its node in autograd's
graph: both know the node's sequence number. What autograd calls in the author's own Python (the
backward of a function, a hook, a checkpoint that computes again) belongs to that.
"""

import re
import threading
from types import CodeType, FrameType
from typing import Any, Final

from ci_perf.measuring.module_files import INSTALLED
from ci_perf.measuring.places import Places
from ci_perf.model.base import LARGEST
from ci_perf.model.explanation import PATH_CHARS, AuthorFunction
from ci_perf.system.linux import short

# They belong to the function around them, whose own code they are from Python 3.12 on.
_WITHIN: Final = frozenset({"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"})
_PARTS: Final = re.compile(r"(\.<locals>\.<(listcomp|setcomp|dictcomp|genexpr)>)+$")
_Place = tuple[AuthorFunction | None, int]


class AuthorCode:
    """The functions of the repository, by their code."""

    def __init__(self, root: str) -> None:
        """`root` is the repository: installed packages below it are not the author's."""
        self._places = Places(root)
        # With the code itself, whose place in memory another one could take.
        self._known: dict[int, tuple[CodeType, AuthorFunction | None]] = {}
        self._by_name: dict[tuple[str, str], AuthorFunction] = {}

    def function(self, code: CodeType) -> AuthorFunction | None:
        """Return the function that a code is of; `None` where it is not the repository's."""
        known = self._known.get(id(code))
        if known is None:
            known = self._known[id(code)] = code, self._find_function(code)
        return known[1]

    def function_around(self, code: CodeType | str) -> AuthorFunction | None:
        """Return the function that a code is of, or a part of: a comprehension is a part."""
        if isinstance(code, str):
            return None
        file = self._find_file(code) if is_part(code) else None
        if not file:
            return self.function(code)
        return self._by_name.get((short(file), short(_PARTS.sub("", code.co_qualname))))

    def caller(
        self, frame: FrameType | None, engine: CodeType | None
    ) -> tuple[AuthorFunction | None, int, bool]:
        """Return the innermost function of the repository on a stack, and the line where it is.

        And whether autograd's `engine` stands between: then the function has only called backward.
        """
        is_behind = False
        while frame is not None:
            code = frame.f_code
            if code is engine:
                is_behind = True
            elif function := self.function(code):
                return function, frame.f_lineno or code.co_firstlineno, is_behind
            frame = frame.f_back
        return None, 0, is_behind

    def _find_file(self, code: CodeType) -> str | None:
        """Return the author's file: of another environment in the checkout none is."""
        # What was made by `exec` has a name such as "<string>", or one of the program's choice.
        if not code.co_filename.startswith("/"):
            return None
        file = self._places.in_repository(code.co_filename)
        return file if file and INSTALLED.isdisjoint(file.split("/")) else None

    def _find_function(self, code: CodeType) -> AuthorFunction | None:
        file = (self._find_file(code) or "").encode(errors="replace").decode()
        if not file or len(file) > PATH_CHARS or is_part(code):
            return None
        function = AuthorFunction(
            file=file,
            function=short(code.co_qualname),
            line=min(max(code.co_firstlineno, 0), LARGEST),
        )
        return self._by_name.setdefault((short(file), function.function), function)


def is_part(code: CodeType | str) -> bool:
    """Whether a code is no function of its own, but a part of the one around it."""
    return isinstance(code, CodeType) and code.co_name in _WITHIN


class Origins:
    """Knows where the operators of one step come from."""

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

    def find(self, frame: FrameType | None) -> tuple[AuthorFunction | None, int, bool]:
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
