"""Causes that are planted in small models: one change of the text each, and what must be named.

The models are in `models/`. Each has a line where helpers are defined, and one where two harmless
decoys are put into the head beside the cause, as any pull request has.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ci_perf.model.explanation import CauseKind

Change = tuple[str, str]

HELPERS: Final = "# planted: helpers"
_DECOYS: Final = "# planted: decoys "
_HARMLESS: Final = """
def tidy(x):
    return x.unsqueeze(0).squeeze(0)


def note(number):
    return sum(range(number))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Planted:
    """One cause: changes of a model's text, and the right answer.

    ``functions`` are the places that may be named, and ``kinds`` what may be said of them.
    ``is_exact``: it leaves a trace in counts.
    """

    model: str
    changes: tuple[Change, ...]
    functions: frozenset[str]
    kinds: frozenset[CauseKind]
    is_exact: bool = True


def plant(
    model: str,
    *changes: Change,
    at: str,
    kinds: str,
    is_exact: bool = True,
) -> Planted:
    """Make a cause; functions and kinds are words in one text."""
    return Planted(
        model=model,
        changes=changes,
        functions=frozenset(at.split()),
        kinds=frozenset(kinds.split()),  # type: ignore[arg-type]
        is_exact=is_exact,
    )


def sources(models: Mapping[str, str], planted: Planted) -> tuple[str, str, str]:
    """Return the text of the base, of the base with the decoys, and of the head.

    A change that finds nothing to replace is an error.
    """
    base = models[planted.model]
    return base, _with_decoys(base), _with_decoys(_changed(base, planted.changes))


def _changed(text: str, changes: tuple[Change, ...]) -> str:
    for before, after in changes:
        if text.count(before) != 1:
            raise ValueError(f"{before!r} is {text.count(before)} times in the model")
        text = text.replace(before, after)
    return text


def _with_decoys(text: str) -> str:
    lines = []
    for line in text.replace(HELPERS, _HARMLESS.strip()).splitlines():
        indent, mark, name = line.partition(_DECOYS)
        lines += [f"{indent}{name} = tidy(tidy({name}))", f"{indent}note(3)"] if mark else [line]
    return "\n".join(lines) + "\n"


def helper(text: str) -> Change:
    """Define a function before all others of the model."""
    return HELPERS, f"{text.strip()}\n\n\n{HELPERS}"
