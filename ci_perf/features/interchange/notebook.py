"""For notebooks: open a run or a comparison, look at it, tabulate it."""

from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import msgspec

from ci_perf.errors import InvalidFileError
from ci_perf.model import codec
from ci_perf.model.comparison import Comparison
from ci_perf.model.run import Run
from ci_perf.report import frame, html
from ci_perf.system import files

Loadable = Run | Comparison
_KINDS: dict[str, type[Loadable]] = {
    "run": Run,
    "comparison": Comparison,
}


@dataclass(frozen=True, slots=True)
class Loaded:
    """A run or a comparison; ``document`` is the whole of it."""

    document: Loadable

    def __repr__(self) -> str:
        return f"Loaded({type(self.document).__name__})"

    def to_frame(self) -> "frame.DataFrame":
        """Return a row per fact: metric and process, or row of a comparison."""
        return self.tabulate().to_frame()

    def tabulate(self) -> frame.TidyTable:
        """Return the same rows, which CSV can show, too."""
        if isinstance(self.document, Run):
            return frame.tabulate_runs(self.document)
        return frame.tabulate_comparison(self.document)

    def _repr_html_(self) -> str:
        if isinstance(self.document, Run):
            return html.run(self.document)
        return html.comparison(self.document)


class _Tagged(msgspec.Struct):
    """The one key that says what a file is."""

    type: str


def load(source: Loadable | str | PathLike[str]) -> Loaded:
    """Open a run or a comparison, or a file that `run` or `--format json` wrote.

    Raises InvalidFileError: unreadable, damaged, or of another kind.
    """
    if isinstance(source, Loadable):
        return Loaded(source)
    where = Path(source)
    text = files.read_text(where)
    kind = codec.decode(text, _Tagged, name=str(where)).type
    if kind not in _KINDS:
        raise InvalidFileError(
            f"{where}: $.type: expected 'run' or 'comparison', found {kind!r}; "
            "give the file that ci-perf run, or compare with --format json, wrote"
        )
    return Loaded(codec.decode(text, _KINDS[kind], name=str(where)))
