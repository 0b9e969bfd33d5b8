"""Scores as Markdown."""

from collections.abc import Mapping, Sequence

from benchmarks.verdicts.scores import Rate, Score

COLUMNS = (
    "rule",
    "false alarms, per comparison",
    "per pull request",
    "slower found",
    "faster found",
    "wrong sign",
    "green though changed",
    "inconclusive",
    "launches",
)
# What our own rule is meant to reach on simulated pull requests: power at 3 % and at 5 %. In a
# regime that is not named, only false alarms count.
POWER_TO_REACH = {
    "quiet": (0.99, 0.97),
    "typical": (0.99, 0.97),
    "noisy": (0.85, 0.97),
    "drift": (0.99, 0.97),
    "bimodal": (0.75, 0.97),
    "heavy": (0.85, 0.97),
}
ALARMED_TO_REACH = 0.01
TYPICAL_LAUNCHES_TO_REACH = 4.0


def of_rules(scores: Sequence[Score]) -> str:
    """Return a row per rule; changes that were found are given size by size."""
    sizes = "/".join(f"{100 * size:.0f}" for size in _sizes(scores[0], 1))
    head = [f"{name} {sizes} %" if name.endswith(" found") else name for name in COLUMNS]
    return "\n".join([*_header(head), *(_line(_cells(score)) for score in scores)])


def against_targets(scores: Mapping[str, Score]) -> str:
    """Return a row per regime: our rule beside what it is meant to reach."""
    head = (
        "regime",
        "pull requests with a false alarm",
        "3 % found",
        "5 % found",
        "2 % called unchanged",
        "inconclusive",
        "launches",
        "reached",
    )
    rows = [_line(_target_cells(regime, score)) for regime, score in scores.items()]
    return "\n".join([*_header(head), *rows])


def by_part(scores: Mapping[str, Mapping[str, Score]]) -> str:
    """Return our rule on each part of the seeds, a row per regime."""
    parts = list(next(iter(scores.values())))
    figures = ("false alarms", "3 % found", "5 % found", "launches")
    head = ["regime", *(f"{figure}, {part}" for figure in figures for part in parts)]
    lines = _header(head)
    for regime, per_part in scores.items():
        of_parts = list(per_part.values())
        cells = [_with_bounds(score.alarmed_pull_requests) for score in of_parts]
        cells += [
            _percent(score.together(size).right) for size in (0.03, 0.05) for score in of_parts
        ]
        cells += [f"{score.launches_per_workload:.1f}" for score in of_parts]
        lines.append(_line([regime, *cells]))
    return "\n".join(lines)


def by_size(scores: Mapping[str, Score]) -> str:
    """Return, for each regime and loss, how often ours says regressed / unchanged / nothing."""
    sizes = sorted({size for score in scores.values() for size in score.by_effect if size > 0})
    lines = _header(["regime", "no change", *(f"+{100 * size:g} %" for size in sizes)])
    for regime, score in scores.items():
        alarms = 100 * score.alarms.share
        calm = 100 - alarms - 100 * score.inconclusive.share
        said = f"{alarms:.2f}/{calm:.0f}/{max(0.0, 100 - alarms - calm):.0f}"
        cells = [f"{said} ({score.launches_per_workload:.1f})"]
        for size in sizes:
            shares = score.by_effect.get(size)
            if shares is None:
                cells.append("-")
                continue
            right, green = 100 * shares.right.share, 100 * shares.green.share
            cells.append(f"{right:.1f}/{green:.1f}/{max(0.0, 100 - right - green):.1f}")
        lines.append(_line([regime, *cells]))
    return "\n".join(lines)


def misses(regime: str, score: Score) -> list[str]:
    """Return, in words, each figure to reach that our rule does not reach."""
    missed = []
    if score.alarmed_pull_requests.share > ALARMED_TO_REACH:
        missed.append("false alarms")
    for size, least in zip((0.03, 0.05), POWER_TO_REACH.get(regime, ()), strict=False):
        if score.together(size).right.share < least:
            missed.append(f"{100 * size:.0f} % in {100 * least:.0f} %")
    if regime == "typical" and score.launches_per_workload > TYPICAL_LAUNCHES_TO_REACH:
        missed.append(f"{TYPICAL_LAUNCHES_TO_REACH:.0f} launches")
    return missed


def _target_cells(regime: str, score: Score) -> list[str]:
    missed = misses(regime, score)
    return [
        regime,
        _with_bounds(score.alarmed_pull_requests),
        _with_bounds(score.together(0.03).right, digits=1),
        _with_bounds(score.together(0.05).right, digits=1),
        _percent(score.together(0.02).green),
        _percent(score.inconclusive),
        f"{score.launches_per_workload:.1f}",
        "no: " + ", ".join(missed) if missed else "yes",
    ]


def _cells(score: Score) -> list[str]:
    changed = score.all_sizes()
    return [
        score.name,
        _with_bounds(score.alarms),
        _with_bounds(score.alarmed_pull_requests),
        *(_found(score, direction) for direction in (1, -1)),
        _percent(changed.wrong_sign),
        _percent(changed.green),
        _percent(score.inconclusive),
        f"{score.launches_per_workload:.1f}",
    ]


def _sizes(score: Score, direction: int) -> list[float]:
    return sorted((effect for effect in score.by_effect if effect * direction > 0), key=abs)


def _found(score: Score, direction: int) -> str:
    shares = [score.by_effect[effect].right.share for effect in _sizes(score, direction)]
    return "/".join(f"{100 * share:.0f}" for share in shares) or "-"


def _with_bounds(rate: Rate, *, digits: int = 2) -> str:
    if not rate.of:
        return "-"
    low, high = (f"{100 * bound:.{digits}f}" for bound in rate.bounds)
    return f"{100 * rate.share:.{digits}f} % ({low} to {high})"


def _percent(rate: Rate) -> str:
    return f"{100 * rate.share:.1f} %" if rate.of else "-"


def _header(names: Sequence[str]) -> list[str]:
    return [_line(names), "|:--|" + "--:|" * (len(names) - 1)]


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
