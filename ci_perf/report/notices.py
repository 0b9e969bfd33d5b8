"""What to know before the table: what else moved, and whether the machine can be trusted."""

from collections.abc import Sequence

from ci_perf.errors import ExitCode
from ci_perf.judging import canaries
from ci_perf.judging.comparability import INSTALLED, NONE
from ci_perf.model.comparison import (
    Change,
    Code,
    Comparison,
    Difference,
    Drifted,
    Severity,
    Stale,
    Verdict,
    severity_of,
)
from ci_perf.model.metrics import STEP_CPU, STEP_TIME, Unit
from ci_perf.model.validity import Reason, Status
from ci_perf.report import advice, phrases, remarks, same_program, units
from ci_perf.report.escape import Sentence, Words
from ci_perf.report.phrases import Phrase, fill

# What fails a job by itself.
_PROVES = frozenset({Severity.REGRESSED, Severity.NUMERICS_CHANGED})
_TIMES = frozenset({STEP_TIME.name, STEP_CPU.name})
_INFO = "ℹ️ "  # noqa: RUF001  an icon, not an i
_DATE = len("2026-11-21")
_IMAGE = "image"
# What comes with an image, the likeliest cause first; the driver and the kernel are the host's.
_PACKAGES = "packages"
_BROUGHT = ("torch", "cuda", "cudnn", "python", "transformers", _PACKAGES)
_INVALID = Words("🛑 This run cannot be trusted. Draw no conclusions from its numbers:")
_PARTLY_INVALID = Words(
    "🛑 The machine could not be trusted while some workloads ran. Draw no conclusions from their "
    "numbers:"
)
_MOVED = ". So times are not judged by their history; memory and counts are"
_MOVED_AND_PAIRED = ". So times are judged only by pairs of launches"
_MOVED_AND_JUDGED = ". Times are judged all the same, as suite.toml asks"
# Fixed programs run in the image, too.
_MACHINE_MOVED = (
    "⚠️ The speed of the machine changed: fixed programs, which no pull request can change, were "
    "faster or slower than before"
)
_MACHINE_OR_IMAGE_MOVED = (
    "⚠️ The speed of the machine changed, or the image makes the difference: fixed programs were "
    "faster or slower than before"
)
_BUSY = Words(
    "⚠️ The machine was busy with other work, which may explain a change below, or hide one:"
)
_DEGRADED = Words("⚠️ The machine was not in its best state, which may explain small changes:")
_INCOMPLETE = Words("⚠️ Some measurements did not finish, and are not judged:")


def of(comparison: Comparison) -> list[Phrase]:
    """Say what moved besides this change, why an unproven job fails, and what else differs."""
    said = (
        _fails_unproven(comparison),
        same_program.notice(comparison),
        _whole_suite(comparison),
        _cleared(comparison),
        _drifted(comparison.drifted),
        _packages(comparison),
        *differences(comparison),
    )
    return [phrase for phrase in said if phrase]


def _fails_unproven(comparison: Comparison) -> Phrase:
    """Explain a job that fails without proof: only `fail_on` can ask for that."""
    is_proven = any(row.gate and severity_of(row) in _PROVES for row in comparison.rows)
    if comparison.exit_code != ExitCode.REGRESSED or is_proven:
        return ()
    return (Words("⚠️ Nothing is proven: the job fails because `fail_on` asks for it."),)


def _whole_suite(comparison: Comparison) -> Phrase:
    """Show the mean over the workloads where one of them has no answer of its own."""
    whole = comparison.whole_suite
    is_open = any(
        isinstance(row, Change)
        and row.metric in _TIMES
        and row.verdict in {Verdict.INCONCLUSIVE, Verdict.LIKELY_SLOWER}
        for row in comparison.rows
    )
    if whole is None or not is_open:
        return ()
    change = units.change(whole.ratio, whole.interval.low, whole.interval.high)
    return (
        Words(
            f"{_INFO}The whole suite: {change}, the mean of the {whole.workloads:,} workloads that "
            f"were launched in {whole.pairs:,} pairs. It is shown, and fails no job."
        ),
    )


def _cleared(comparison: Comparison) -> Phrase:
    """Name the suspects that pairs cleared, which the table shows among the unchanged rows."""
    rows = [
        row
        for row in comparison.rows
        if isinstance(row, Change) and row.gate and row.code is Code.BASELINE_MOVED
    ]
    rows.sort(key=lambda row: -abs((row.drift or 1.0) - 1))
    named = phrases.joined((*phrases.titled(row), Words(remarks.drift(row))) for row in rows)
    if comparison.stale is not None:
        opening = _stale(comparison.stale, rows)
        return (Words(f"{opening}: "), *named, Words(".")) if rows else (Words(f"{opening}."),)
    if not rows:
        return ()
    many = len(rows) != 1
    return fill(
        f"{_INFO}{len(rows):,} suspected metric{'s differ' if many else ' differs'} from "
        f"{'their' if many else 'its'} history, but not from the base launched in the same job: "
        "{named}. The cause is the machine or the baseline, not this change.",
        named=named,
    )


def _stale(stale: Stale, rows: list[Change]) -> str:
    """Say that they all moved in one direction, which no single suspect shows."""
    cleared = max(stale.cleared, len(rows))
    which = "all of them" if cleared == stale.cleared else f"{stale.cleared:,} of them"
    # Only times are slow.
    is_time = all(phrases.unit(row.metric) is Unit.SECOND for row in rows)
    worse, better = ("slower", "faster") if is_time else ("worse", "better")
    direction = worse if stale.ratio > 1 else better
    return (
        f"⚠️ {cleared:,} of {stale.suspects:,} suspected metrics do not differ from the base "
        f"launched in the same job, and {which} are {direction} than in the history (typically "
        f"{phrases.moved('', stale.ratio)}). The cause is the machine or the baseline, not this "
        "change"
    )


def _drifted(drifted: tuple[Drifted, ...]) -> Phrase:
    """Say that the main branch is no longer where its baseline began."""
    if not drifted:
        return ()
    named = (
        (
            each.workload,
            Words(" "),
            phrases.metric_title(each.metric),
            Words(
                f" {phrases.moved(each.metric, each.ratio)} over {each.sessions:,} sessions since "
            ),
            each.since[:_DATE],
        )
        for each in drifted
    )
    return fill(
        "⚠️ The main branch has drifted away from its baseline, in steps too small to notice: "
        "{named}.",
        named=phrases.joined(named),
    )


# --- what differs between the two environments


def _packages(comparison: Comparison) -> Phrase:
    """Say what pairs do not show of packages that this change has brought, or asks for."""
    names = comparison.interleaved.dependencies if comparison.interleaved else ()
    if _are_packages_new(comparison):
        return fill(
            "⚠️ This change alters {names}, and the installed packages are not those of the "
            "baseline. Base and head were launched with the same packages: pairs show what the "
            "code does, and only the history shows what the packages do.",
            names=phrases.joined((name,) for name in names),
        )
    # Files of a CI, such as .github/workflows/perf.yml, mostly ask for other things.
    asking = [name for name in names if not name.startswith(".")]
    if not asking or not comparison.base.sessions:
        return ()
    return fill(
        f"{_INFO}This change alters {{names}}, and the installed packages are those of the "
        "baseline. What it asks for was measured only if it was installed before.",
        names=phrases.joined((name,) for name in asking),
    )


def _are_packages_new(comparison: Comparison) -> bool:
    has_dependencies = comparison.interleaved is not None and comparison.interleaved.dependencies
    return bool(has_dependencies) and any(
        each.field in INSTALLED for each in comparison.differences
    )


def differences(comparison: Comparison) -> list[Phrase]:
    """Name the soft facts that differ: what the image brought, and what it did not."""
    said_already = {_PACKAGES} if _are_packages_new(comparison) else set()
    every = [each for each in comparison.differences if each.field not in said_already]
    images = [difference for difference in every if difference.field == _IMAGE]
    brought = [difference for difference in every if images and difference.field in _BROUGHT]
    rest = [each for each in every if each not in images and each not in brought]
    said: list[Phrase] = []
    if images:
        software = sorted(brought, key=lambda difference: _BROUGHT.index(difference.field))
        with_it = (Words(": "), *phrases.joined(map(_fact, software))) if software else ()
        ending = Words(". This may explain a change below.")
        said.append((*_image_change(images), *with_it, ending))
    if rest:
        has_pairs = any(isinstance(row, Change) and row.pairs for row in comparison.rows)
        shared = (
            "Pairs share one environment; this may explain, or hide, what only the history shows."
        )
        effect = shared if has_pairs else "This may explain a change below, or hide one."
        facts = phrases.joined(map(_fact, rest))
        said.append(fill(f"⚠️ The environment differs: {{facts}}. {effect}", facts=facts))
    return said


def _image_change(images: Sequence[Difference]) -> Phrase:
    """Say that an image took the place of another; a side without one was in no container."""
    for measured, other, sides in (
        ("head", "base", [(each.head, each.base) for each in images]),
        ("base", "head", [(each.base, each.head) for each in images]),
    ):
        if all(without == NONE for _, without in sides):
            said = f"⚠️ The {measured} was measured in a container ({{named}}), the {other} was not"
            return fill(said, named=phrases.joined((image,) for image, _ in sides))
    return (Words("⚠️ Image changed: "), *phrases.joined(map(_step, images)))


def _fact(difference: Difference) -> Phrase:
    if difference.field == _PACKAGES:
        return (Words("other installed packages"),)
    return (difference.field, Words(" "), *_step(difference))


def _step(difference: Difference) -> Phrase:
    return (difference.base or NONE, Words(" → "), difference.head or NONE)


# --- whether the machine can be trusted


def validity(comparison: Comparison) -> list[Phrase]:
    """Say why the machine is not fully trusted, worst reasons first; empty if it is."""
    if comparison.validity.status is Status.VALID:
        return []
    order = list(Status)
    groups: dict[tuple[Status, str], list[Reason]] = {}
    for reason in sorted(comparison.validity.reasons, key=lambda r: -order.index(r.status)):
        groups.setdefault((reason.status, reason.code), []).append(reason)
    every = [_reason(group) for group in groups.values()]
    shown = every[: phrases.MAX_NAMED]
    if more := len(every) - len(shown):
        shown.append((Words(f"… and {more:,} more"),))
    return [(_trust(comparison),), *shown]


def _trust(comparison: Comparison) -> Words:
    if comparison.validity.is_run_invalid:
        return _INVALID
    if comparison.validity.status is Status.INVALID:
        return _PARTLY_INVALID
    codes = {reason.code for reason in comparison.validity.reasons}
    if codes == {"incomplete"}:
        return _INCOMPLETE
    if not codes & {canaries.CODE, canaries.CODE_WITHOUT_GATE}:
        return _BUSY if codes & advice.BUSY_CODES else _DEGRADED
    others = codes - {canaries.CODE, canaries.CODE_WITHOUT_GATE}
    end = ". This and other findings about the machine:" if others else ":"
    return Words(_moved_machine(comparison, codes) + end)


def _moved_machine(comparison: Comparison, codes: set[str]) -> str:
    """Say what a move meant for the verdicts: nothing, where the canaries do not gate."""
    has_other_image = any(difference.field == _IMAGE for difference in comparison.differences)
    moved = _MACHINE_OR_IMAGE_MOVED if has_other_image else _MACHINE_MOVED
    if canaries.CODE not in codes:
        return moved + _MOVED_AND_JUDGED
    return moved + (_MOVED if comparison.interleaved is None else _MOVED_AND_PAIRED)


def _reason(group: list[Reason]) -> Phrase:
    """Show the first reason of a kind whole, and of the others only the workload."""
    first = group[0]
    whose: Phrase = (Words(" ("), first.workload, Words(")")) if first.workload else ()
    names = dict.fromkeys(r.workload for r in group if r.workload not in {"", first.workload})
    others = phrases.joined((name,) for name in names)
    more: Phrase = (Words("; also "), *others) if others else ()
    return (first.code, *whose, Words(": "), Sentence(first.detail), *more)
