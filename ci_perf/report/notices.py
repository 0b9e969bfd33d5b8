"""What to know before the table: what else moved, and whether the machine can be trusted."""

from collections.abc import Iterator

from ci_perf.errors import ExitCode
from ci_perf.judging.comparability import INSTALLED
from ci_perf.model.comparison import Comparison, Verdict
from ci_perf.model.validity import Doubt, Reason, Status
from ci_perf.report import advice, phrases, remarks, same_program
from ci_perf.report.escape import Phrase, Sentence, Words
from ci_perf.report.sentences import say

# What fails a job by itself.
_PROVES = frozenset({Verdict.REGRESSED, Verdict.NUMERICS_CHANGED})


def list_notices(comparison: Comparison) -> list[Phrase]:
    """Say what else moved or differs, why an unproven job fails, and what is distrusted."""
    return list(filter(None, _find_notices(comparison)))


def _find_notices(comparison: Comparison) -> Iterator[Phrase]:
    # Only `fail_on` lets a job fail without proof.
    is_proven = any(row.gate and row.verdict in _PROVES for row in comparison.rows)
    if comparison.exit_code == ExitCode.REGRESSED and not is_proven:
        yield say("fails_unproven")
    yield same_program.render_notice(comparison)
    cleared = advice.list_cleared(comparison)
    if cleared:
        yield say(
            "cleared",
            rows=sorted(cleared, key=lambda row: -abs((row.drift or 1.0) - 1)),
            drift=remarks.describe_drift,
        )
    if comparison.drifted:
        yield say("drifted", drifted=comparison.drifted)
    yield from _compare_environments(comparison)
    yield _tell_distrust(comparison)


def _compare_environments(comparison: Comparison) -> Iterator[Phrase]:
    """Say which packages the change asks for, and which soft facts differ, the image first."""
    names = comparison.interleaved.dependencies if comparison.interleaved else ()
    is_brought = bool(names) and any(f.field in INSTALLED for f in comparison.differences)
    # Files of a CI, such as .github/workflows/perf.yml, mostly ask for other things.
    asking = [(name,) for name in names if is_brought or not name.startswith(".")]
    if asking and (is_brought or comparison.base.sessions):
        yield say("packages", files=asking, is_brought=is_brought)
    named = {"packages"} if is_brought else set()
    facts = [each for each in comparison.differences if each.field not in named]
    if facts:
        facts.sort(key=lambda each: each.field != "image")
        yield say("other_environment", facts=facts)


# --- whether the machine can be trusted


def _tell_distrust(comparison: Comparison) -> Phrase:
    """Say how far the machine is trusted, then the worst reasons first; empty if it is wholly."""
    validity = comparison.validity
    if validity.status is Status.VALID:
        return ()
    order = list(Status)
    groups: dict[tuple[Status, str], list[Reason]] = {}
    for reason in sorted(validity.reasons, key=lambda reason: -order.index(reason.status)):
        groups.setdefault((reason.status, reason.code), []).append(reason)
    reasons = []
    for first, *others in groups.values():
        # The first reason of a kind whole, of the others only the workload.
        known = {"", first.workload}
        names = dict.fromkeys(each.workload for each in others if each.workload not in known)
        detail, also = Sentence(first.detail), [(name,) for name in names]
        reasons.append(say("reason", first=first, detail=detail, others=also))
    seen = {reason.doubt for reason in validity.reasons}
    said = say(
        "trust",
        validity=validity,
        is_incomplete=seen == {Doubt.INCOMPLETE},
        is_moved=not seen.isdisjoint({Doubt.MACHINE_MOVED, Doubt.MACHINE_MOVED_NO_GATE}),
        is_gating=Doubt.MACHINE_MOVED in seen,
        is_busy=any(doubt and doubt.is_busy for doubt in seen),
    )
    return (*said, Words(" "), *phrases.join_phrases(reasons, between="; "))
