"""What a row's verdict alone does not say: why, by how many pairs, and what would decide it."""

from ci_perf.model.comparison import Change, Remedy, Row, Verdict
from ci_perf.model.suite import LARGEST_MARGIN
from ci_perf.report import standings, units, words
from ci_perf.report.escape import Words
from ci_perf.report.standings import Standing

_PREDICTED, _ALONE = "predicted", "by its history alone"
# What a reason code means, where the verdict alone does not say it. docs/judging.md has them all.
_SAID = {
    "accepted": "accepted in this change, with a history that is still too young to clear it",
    "assumed": "its history has fewer than 3 sessions, so how much these differ is assumed",
    "canary_moved": "the machine moved, so no time is judged by its history",
    "clocks_moved": "the clocks of the two sides differ, and in cycles the change does not show",
    "failed_on_base": "failed on the base, not there at all now",
    "metric_missing": "in the baseline, not in this run",
    "metric_new": "no baseline yet",
    "missing": "has a baseline, was not measured",
    "new": "no baseline yet",
    "new_since_failed": "failed on the base",
    "other_machine": "another machine",
    "other_parameters": "other parameters",
    "other_software": "other software, which suite.toml makes a hard fact",
    "other_step": "a step is not the same on both sides",
    _PREDICTED: f"{_ALONE}, without launches of the base beside it",
    "ranges_overlap": "some processes are beyond the limit and some are not",
    "too_few_pairs": "no pairs of launches that would show a spread",
    "too_few_sessions": "differs from its history, which has fewer than 3 sessions",
    "two_modes": "launches are now fast, now slow, and seldom between",
}
BASE_FAILED = "base_failed"
NOT_CONFIRMED = "not_confirmed"
_NO_GATE = "over its limit, which does not fail the job"
_BY_PAIRS = "judged by pairs instead"
_TRIED = ", and launching the base beside it failed"


def of(row: Row) -> Words:
    """Say what the verdict alone does not; empty where it says everything."""
    found, said = standings.of(row), "; ".join(filter(None, (_said(row), _own_file(row))))
    if found is Standing.UNCHANGED:
        return Words(said)
    if found in standings.NUMERICS:
        return Words("" if row.gate else "does not fail the job")
    if found is Standing.WARNING:
        return Words(f"{_NO_GATE}; {said}" if said else _NO_GATE)
    if found is Standing.INCOMPARABLE and not row.gate:
        said = f"{_BY_PAIRS}; {said}" if said else _BY_PAIRS
    return Words(f"{found.value}: {said}" if said else found.value)


def undecided(row: Change) -> str:
    """Say what would decide a row; empty where nobody can know."""
    if row.remedy is not None:
        return _cure(row.remedy)
    if row.smallest_detectable is None:
        return ""
    return f"could have proven {units.about(row.smallest_detectable)} or more"


def pairs(number: int) -> str:
    """Count pairs of launches."""
    return f"{number:,} pair{'s' * (number != 1)}"


def _said(row: Row) -> str:
    if not isinstance(row, Change):
        is_tried = row.verdict is Verdict.NEW and row.note
        return _SAID.get(row.code, "") + (_TRIED if is_tried else "")
    if row.code == BASE_FAILED or (row.verdict is Verdict.UNCONFIRMED and row.note):
        return _without_base(row)
    if row.code == "confirmed":
        return f"confirmed by {pairs(row.pairs)}" + _promise(row, ": less than {} apart")
    if row.code == "screened":
        return _promise(row, "less than {} from its history")
    if row.code == NOT_CONFIRMED:
        return f"the machine or the baseline moved{drift(row)}, not this change"
    said = _SAID.get(row.code, "")
    if row.verdict is not Verdict.INCONCLUSIVE or (said and row.remedy is None):
        return said
    return "; ".join(part for part in (said, undecided(row)) if part)


def _without_base(row: Change) -> str:
    """Say that the base could not be launched, or since when: what noise would allow is no help."""
    known = _ALONE if row.code == _PREDICTED else _SAID.get(row.code, "")
    since = f" any more, after {pairs(row.pairs)}" if row.pairs else ""
    no_base = f"the base could not be launched beside it{since}"
    return f"{known}; {no_base}" if known else no_base


def _own_file(row: Row) -> str:
    """Say when the two sides did not run the same file: a change may lie in that alone."""
    is_own = isinstance(row, Change) and row.own_file
    return "the base ran its own workload file, for this one does not run there" if is_own else ""


def drift(row: Change) -> str:
    """Say how far the head lies from its history, in brackets; empty where it has none."""
    return f" ({words.moved(row.metric, row.drift)})" if row.drift else ""


def _promise(row: Change, said: str) -> str:
    """Say what "unchanged" promises, where the row is that."""
    is_unchanged = row.verdict is Verdict.UNCHANGED
    shown = quantity(row, row.margin) if row.limit > 1 else units.limit(row.margin)
    return said.format(shown) if is_unchanged else ""


def quantity(row: Change, share: float) -> str:
    """Show a share of the base in the unit of the metric: of one larger than the base itself."""
    return units.value(share * row.base, words.unit(row.metric))


def _cure(found: Remedy) -> str:
    if found.pairs is not None:
        return f"about {pairs(found.pairs)} would decide"
    spread, quiet = units.about(found.spread), units.about(found.quiet_spread)
    said = f"pairs differ by {spread}, {quiet} would decide"
    if found.margin > LARGEST_MARGIN:
        return said
    return f"{said}, or a margin of {units.rounded_up(found.margin)}"
