"""Tell which code is the repository's, and who of it stands on the stack."""

from types import CodeType, FrameType
from typing import Final

import msgspec

from ci_perf.measuring.recording.places import Places
from ci_perf.model.base import LARGEST
from ci_perf.model.program import RelativePath
from ci_perf.model.step_profile import AuthorFunction

NAME_CHARS: Final = 200
# They belong to the function around them, whose own code they are from Python 3.12 on.
_WITHIN: Final = frozenset({"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"})


def shown(text: str) -> str:
    """Return a text of the program as one that a file can hold: valid, and not long."""
    whole = text.encode(errors="replace").decode()
    return whole if len(whole) <= NAME_CHARS else whole[: NAME_CHARS - 1] + "…"


class AuthorCode:
    """The functions of the repository, by their code."""

    def __init__(self, root: str) -> None:
        """`root` is the repository: installed packages below it are not the author's."""
        self._places = Places(root)
        # With the code itself, whose place in memory another one could take.
        self.known: dict[int, tuple[CodeType, AuthorFunction | None]] = {}

    def function(self, code: CodeType) -> AuthorFunction | None:
        """Return the function that a code is of; `None` where it is not the repository's."""
        known = self.known.get(id(code))
        if known is None:
            known = self.known[id(code)] = code, self._function(code)
        return known[1]

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

    def _function(self, code: CodeType) -> AuthorFunction | None:
        # What was made by `exec` has a name such as "<string>", or one of the program's choice.
        if not code.co_filename.startswith("/") or code.co_name in _WITHIN:
            return None
        file = self._places.in_repository(code.co_filename)
        if not file:
            return None
        try:
            return AuthorFunction(
                file=msgspec.convert(file.encode(errors="replace").decode(), RelativePath),
                function=shown(code.co_qualname),
                line=min(max(code.co_firstlineno, 0), LARGEST),
            )
        except msgspec.ValidationError:
            return None
