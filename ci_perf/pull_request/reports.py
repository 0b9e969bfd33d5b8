"""Reports: comparisons that can be shown, each with its machine; and how they are to be shown."""

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ci_perf.baselines import layout
from ci_perf.errors import ExitCode, InvalidFileError, UsageError
from ci_perf.github.actions import MAX_SUMMARY_BYTES
from ci_perf.model.comparison import Comparison
from ci_perf.report import commands, markdown
from ci_perf.report.escape import Phrase
from ci_perf.report.sheet import make_sheet
from ci_perf.system import files

_UNKNOWN_MACHINE = "unknown"
_KNOWN_CODES = {ExitCode.OK, ExitCode.REGRESSED, ExitCode.NO_ANSWER}
# A thousand workloads with every metric; more is no suite, and takes minutes to show.
_MAX_ROWS = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishOptions:
    """Where reports are shown, as far as the event of the job allows it, and how.

    ``key`` tells two comments of ours apart; without it, the suite does. ``history_url`` is the
    page that `ci-perf history` drew. ``baselines`` is a folder of the checkout.
    """

    comment: bool = True
    check: bool = False
    skip_if_unchanged: bool = False
    key: str | None = None
    history_url: str = ""
    baselines: Path = Path("baselines")


@dataclass(frozen=True, kw_only=True)
class Report:
    """A comparison, the machine that it is about, and the artifact that its run lies in.

    ``by_own_baselines`` judges the same run by the baselines that the pull request brings, where
    that is known. ``trust_notes`` say what of the run is not trusted, ``pairs`` has by workload a
    digest of its pairs where this job has read them.
    """

    comparison: Comparison
    machine: str
    artifact: str = commands.USUAL_ARTIFACT
    by_own_baselines: Comparison | None = None
    trust_notes: tuple[Phrase, ...] = ()
    pairs: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Name a check: one per machine, so no two jobs share it."""
        return f"ci-perf: {self.comparison.suite} on {self.machine}"

    @functools.cached_property
    def body(self) -> str:
        """The report below its first lines, made once for all places that have room for it."""
        return markdown.render_body(make_sheet(self.comparison), max_bytes=MAX_SUMMARY_BYTES)


def read(paths: Sequence[Path], key: str | None) -> list[Report]:
    """Read what is to be published, as if a stranger had written it.

    Raises InvalidFileError and UsageError.
    """
    named = [(str(path), make_report(files.read(path, Comparison), str(path))) for path in paths]
    check_apart(named, key)
    return [report for _, report in named]


def make_report(comparison: Comparison, name: str) -> Report:
    """Make a report of a comparison that can be shown; `name` begins every error message.

    What the types allow and no judge would write is refused. Raises InvalidFileError.
    """
    if comparison.exit_code not in _KNOWN_CODES:
        raise InvalidFileError(
            f"{name}: $.exit_code: expected 0, 1 or 3, found {comparison.exit_code}"
        )
    if comparison.interleaved is not None:
        comparison.interleaved.refuse_experiment(name)
    if len(comparison.rows) > _MAX_ROWS:
        raise InvalidFileError(
            f"{name}: $.rows: expected at most {_MAX_ROWS:,}, found {len(comparison.rows):,}"
        )
    try:
        machine = comparison.head.machine
        key = layout.machine_key(machine) if machine else _UNKNOWN_MACHINE
        report = Report(comparison=comparison, machine=key)
        _ = report.body
    except Exception as error:  # noqa: BLE001  numbers that no judge makes break any arithmetic
        raise InvalidFileError(
            f"{name}: expected possible numbers of a comparison, found impossible ones "
            f"({type(error).__name__}); was it written by ci-perf?"
        ) from None
    return report


def check_apart(named: Sequence[tuple[str, Report]], key: str | None) -> None:
    """Refuse two reports that would stand in the same place, by name. Raises UsageError."""
    places: set[tuple[str, str]] = set()
    for name, report in named:
        place = (report.comparison.suite, report.machine)
        if place in places:
            raise UsageError(
                f"{name}: a second comparison of suite {place[0]!r} on {place[1]}; "
                "publish it with another --key"
            )
        places.add(place)
    if key is not None and len({suite for suite, _ in places}) > 1:
        raise UsageError("--key: expected comparisons of one suite; call once per suite")


def worst_code(each: Iterable[int]) -> int:
    """Return the worst of several exit codes: a regression wins, then what has no answer."""
    codes = set(each)
    return ExitCode.REGRESSED if ExitCode.REGRESSED in codes else max(codes)
