"""Two sides in, a comparison and its exit code out: every workload has at least one row."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from ci_perf.judging import (
    canaries,
    candidates,
    changes,
    comparability,
    earlier_checks,
    families,
    rules,
    screen,
    trends,
    uncompared,
)
from ci_perf.judging.candidates import Candidate, Fact, Judgement
from ci_perf.judging.expected import find_expected
from ci_perf.judging.policy import default_limits
from ci_perf.judging.screen import Known
from ci_perf.model import metrics
from ci_perf.model.comparison import (
    Change,
    Comparison,
    Numerics,
    Row,
    Side,
    Spending,
    Uncompared,
    severity_of,
)
from ci_perf.model.metrics import Metric
from ci_perf.model.process import GeneratedCode, Profile, SideProfile
from ci_perf.model.run import Tool
from ci_perf.model.suite import FailOn, Limits, PlannedWorkload, Tiers
from ci_perf.model.summary import Subject, Summary
from ci_perf.model.validity import Reason, validity_of
from ci_perf.version import __version__

Histories = Mapping[str, Subject]
"""The base of each workload of the head that may be compared with it, in the head's order."""


def compare(
    base: Summary,
    head: Summary,
    *,
    limits: Limits | None = None,
    tiers: Tiers | None = None,
    fail_on: FailOn = "proven",
    expected: Collection[str] = (),
) -> Comparison:
    """Judge every workload that either side knows of, or that is expected; rows worst first."""
    limits, tiers = limits or Limits(default=default_limits()), tiers or Tiers()
    base = _find_history(base, head)
    asked = _ask(base, head, limits, tiers)
    validity = validity_of((*base.validity.reasons, *head.validity.reasons, *asked.moved))
    judgements = _judge(asked, head)
    judged = [judgement.change for judgement in judgements if judgement.change is not None]
    others = uncompared.rows(
        base,
        head,
        limits,
        tiers,
        expected=find_expected(head, limits, expected),
        judged=judged,
    )
    numerics = _numerics(asked.histories, base, head, limits)
    ruled = rules.judge_workloads([*judged, *others, *numerics], validity)
    rows = worst_first(families.note_families(ruled, (*base.subjects, *head.subjects)))
    return Comparison(
        tool=Tool(version=__version__),
        suite=head.suite,
        selection=head.selection,
        verdict=rules.overall(rows, validity),
        exit_code=rules.exit_code(rows, validity, fail_on),
        base=_side(base),
        head=_side(head),
        validity=validity,
        differences=comparability.soft_differences(_pair_subjects(base, head)),
        interleaved=head.interleaved,
        spending=_find_spending(head),
        drifted=trends.find_drifted(list(asked.histories.values()), trends.find_thresholds(limits)),
        rows=tuple(rows),
        profiles=tuple(_profiles(base, head, rows)),
        touched=head.touched,
        cost=head.cost,
    )


def first_launches(
    base: Summary, workloads: Iterable[PlannedWorkload], limits: Limits
) -> dict[str, int]:
    """Return how many launches of the head each workload starts with, where pairs may follow."""
    subjects = {subject.workload: subject for subject in base.subjects}
    known: dict[str, list[Known]] = {}
    for workload in workloads:
        before = subjects.get(workload.id)
        is_like = before is not None and before.parameters == workload.parameters
        of_workload = limits.of(workload.id)
        known[workload.id] = (
            list(candidates.known_beforehand(before, of_workload)) if before and is_like else []
        )
    return screen.head_launches(known)


def find_undecided(
    base: Summary, head: Summary, *, limits: Limits, tiers: Tiers, sharing: int = 0
) -> tuple[dict[str, float], int]:
    """Return the workloads of which another pair may decide something, the worst one first.

    With each stands how many pairs more are expected to decide it. And count what shares the chance
    of a false alarm, as it is now: to be noted before the first pair is launched. With `sharing`,
    at least so many share it: those that other nodes may find.
    """
    asked = _ask(base, head, limits, tiers)
    judgements = _judge(asked, head, sharing=sharing)
    return changes.open_workloads(judgements), changes.count_suspects(asked.candidates)


def find_open_metrics(
    base: Summary, head: Summary, workload: str, *, limits: Limits, tiers: Tiers, sharing: int = 0
) -> frozenset[Metric]:
    """Return the metrics of a workload of which another pair may decide something."""
    judgements = _judge(_ask(base, head, limits, tiers), head, sharing=sharing)
    asked = (each.candidate for each in judgements if each.is_open)
    return frozenset(each.metric for each in asked if each.workload == workload)


def count_suspects(base: Summary, head: Summary, *, limits: Limits, tiers: Tiers) -> int:
    """Count what shares the chance of a false alarm: as `find_undecided` does, and nothing else."""
    return changes.count_suspects(_ask(base, head, limits, tiers).candidates)


def worst_first(rows: Iterable[Row]) -> list[Row]:
    """Sort rows by severity, gates before the rest, large changes before small ones."""

    def position(row: Row) -> tuple[int, bool, float, str, str]:
        size = -abs(row.ratio - 1) if isinstance(row, Change) and row.ratio else 0.0
        metric = "" if isinstance(row, Numerics) else row.metric
        return severity_of(row).rank, not row.gate, size, row.workload, metric

    return sorted(rows, key=position)


# --- which sides meet


def _pair_subjects(base: Summary, head: Summary) -> Iterator[tuple[Subject, Subject]]:
    """Pair what both sides have measured."""
    before = {subject.workload: subject for subject in base.subjects}
    for subject in head.subjects:
        if subject.workload in before:
            yield before[subject.workload], subject


def _find_history(base: Summary, head: Summary) -> Summary:
    """Return what was measured before; nothing of it, where the base has another environment."""
    is_other = head.interleaved is not None and head.interleaved.environment is not None
    return msgspec.structs.replace(base, subjects=()) if is_other else base


class _Asked(NamedTuple):
    """What is judged, by which histories, and where canaries say that the machine has moved."""

    histories: Histories
    moved: tuple[Reason, ...]
    candidates: list[Candidate]


def _ask(base: Summary, head: Summary, limits: Limits, tiers: Tiers) -> _Asked:
    base = _find_history(base, head)
    pairs = [
        (before, after)
        for before, after in _pair_subjects(base, head)
        if not comparability.obstacles(before, after, tiers)
        and before.workload not in uncompared.describe_other_work(head)
    ]
    histories = {before.workload: before for before, _ in pairs}
    moved = canaries.judge(pairs, limits)
    return _Asked(histories, moved, _candidates(histories, head, limits, moved))


def _judge(asked: _Asked, head: Summary, *, sharing: int = 0) -> list[Judgement]:
    suspects = head.interleaved.suspects if head.interleaved else 0
    return changes.judge(asked.candidates, suspects=suspects, check=head.check, sharing=sharing)


def _find_spending(head: Summary) -> Spending | None:
    """Say what share of alpha the pairs could spend, and which earlier runs are judged again."""
    is_counted = head.checks is not None or head.check is not None
    if head.interleaved is None or not (head.interleaved.suspects and is_counted):
        return None
    share = 1.0 if head.check is None else earlier_checks.share(head.check)
    workloads: dict[str, list[str]] = {}
    for subject in head.subjects:
        for earlier in subject.paired.earlier if subject.paired else ():
            workloads.setdefault(earlier.run, []).append(subject.workload)
    runs = {run: tuple(sorted(workloads[run])) for run in sorted(workloads)}
    return Spending(check=head.check, share=share, earlier=runs)


def _candidates(
    histories: Histories, head: Summary, limits: Limits, moved: Sequence[Reason]
) -> list[Candidate]:
    """Return every metric that may be judged: by a history that compares, or by pairs alone."""
    every: list[Candidate] = []
    accepted = head.interleaved.accepted if head.interleaved else {}
    dependencies = head.interleaved.dependencies if head.interleaved else ()
    for subject in head.subjects:
        name = subject.workload
        if name in uncompared.describe_other_work(head):
            continue
        of_workload = limits.of(name)
        before = histories.get(name)
        softs = [each.sessions[-1].soft for each in (before, subject) if each]
        has_other_packages = (
            bool(dependencies) and before is not None and comparability.have_other_packages(*softs)
        )
        every += candidates.find_candidates(
            subject,
            before,
            of_workload,
            moved=canaries.find_silenced_kinds(moved, name, of_workload.get(metrics.CANARY)),
            accepted=accepted.get(name, ()),
            facts=candidates.choose(
                {Fact.TRIMMED: limits.trimmed, Fact.OTHER_PACKAGES: has_other_packages}
            ),
        )
    return changes.note_more_work(every)


def _numerics(
    histories: Histories, base: Summary, head: Summary, limits: Limits
) -> Iterator[Numerics]:
    """Yield the rows of numerics; a base that was launched counts more than its baseline."""
    known = {subject.workload for subject in base.subjects}
    for subject in head.subjects:
        history = histories.get(subject.workload)
        is_incomparable = subject.workload in known and history is None
        limit = limits.of(subject.workload).get(metrics.FINGERPRINT)
        if limit is None or (is_incomparable and not subject.paired):
            continue
        if row := comparability.judge_numerics(
            _build_launched_base(subject) or history, subject, limit
        ):
            yield row


def _build_launched_base(head: Subject) -> Subject | None:
    """Return the base as it was launched beside this head, where it computed something."""
    prints = head.paired.base_fingerprints if head.paired else ()
    if not prints:
        return None
    session = msgspec.structs.replace(head.sessions[-1], fingerprints=prints)
    return msgspec.structs.replace(head, sessions=(session,))


def _profiles(base: Summary, head: Summary, rows: Iterable[Row]) -> Iterator[Profile]:
    """Yield the profiles of the head, with those of a base that was measured by itself.

    A step time is that of its row: a report knows one.
    """
    name = metrics.STEP_TIME.name
    before = {profile.workload: profile.head for profile in base.profiles}
    old: dict[str, float] = {}
    new: dict[str, float] = {}
    for row in rows:
        if isinstance(row, Change) and row.metric == name:
            old[row.workload], new[row.workload] = row.base, row.head
        elif isinstance(row, Uncompared) and name in row.head:
            new.setdefault(row.workload, row.head[name])
    for profile in head.profiles:
        workload = profile.workload
        step_s, base_s = new.get(workload, profile.head.step_time_s), old.get(workload)
        absent = profile.head.generated and GeneratedCode(absent="the base was not launched")
        alone = SideProfile(step_time_s=0.0, generated=absent)
        launched = profile.base or before.get(workload) or alone
        side = msgspec.structs.replace(launched, step_time_s=base_s or 0.0)
        yield msgspec.structs.replace(
            profile,
            head=msgspec.structs.replace(profile.head, step_time_s=step_s),
            base=side if base_s else None,
            break_evens=tuple(
                msgspec.structs.replace(each, gain_s=new[each.eager] - step_s)
                if each.eager in new
                else each
                for each in profile.break_evens
            ),
        )


def _side(summary: Summary) -> Side:
    times = sorted(
        session.recorded_at for subject in summary.subjects for session in subject.sessions
    )
    nodes = {
        session.node for subject in summary.subjects for session in subject.sessions if session.node
    }
    return Side(
        label=summary.label,
        run=summary.run,
        source=summary.source,
        machine=summary.subjects[0].machine if summary.subjects else summary.machine,
        sessions=max((len(subject.sessions) for subject in summary.subjects), default=0),
        nodes=len(nodes),
        oldest=times[0] if times else "",
        newest=times[-1] if times else "",
        image=summary.image,
    )
