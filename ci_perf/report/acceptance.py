"""What accepting a run did, in one line per file and metric that moved."""

from collections.abc import Iterable
from dataclasses import dataclass

from ci_perf.model import metrics
from ci_perf.model.summary import Numbers
from ci_perf.report import units

_INDENT = " " * 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """What happened to one file; ``before`` and ``after`` are headlines.

    ``before`` is empty for a new file. ``began`` names the metrics of which a new epoch begins.
    """

    action: str
    path: str
    before: Numbers
    after: Numbers
    began: tuple[str, ...]
    changed_numerics: bool


def render(files: Iterable[Accepted]) -> str:
    """Say what happened to each file."""
    lines: list[str] = []
    for one in files:
        lines.append(f"{one.action:<9} {one.path}")
        if one.action != "kept":
            lines += [f"{_INDENT}{line}" for line in _news(one)]
    return "\n".join(lines) if lines else "nothing to accept"


def _news(one: Accepted) -> Iterable[str]:
    if one.changed_numerics:
        yield "numerics: other losses, or another output"
    if began := [metrics.BY_NAME[n].title for n in one.began if n in metrics.BY_NAME]:
        yield f"a new epoch begins: {', '.join(began)}"
    yield from _moves(one.before, one.after)


def _moves(before: Numbers, after: Numbers) -> Iterable[str]:
    for name in sorted(before.keys() | after.keys()):
        metric = metrics.BY_NAME[name]
        old, new = (
            units.value(side[name], metric.unit) if name in side else "none"
            for side in (before, after)
        )
        if not before:
            if after[name]:  # nothing was compiled: no news
                yield f"{metric.title}: {new}{_explained(after, name)}"
        elif old != new:
            percent = _percent(before, after, name)
            yield f"{metric.title}: {old} → {new}{percent}{_explained(after, name)}"


def _percent(before: Numbers, after: Numbers, name: str) -> str:
    if not before.get(name) or name not in after:
        return ""
    return f" ({units.percent(after[name] / before[name] - 1)})"


def _explained(after: Numbers, name: str) -> str:
    """Say how the 95th percentile of the steps can lie below the step time, which is a mean."""
    step_time = after.get(metrics.STEP_TIME.name, 0.0)
    if name != metrics.STEP_P95.name or after.get(name, step_time) >= step_time:
        return ""
    return ", below the step time: a few steps were much slower than all others"
