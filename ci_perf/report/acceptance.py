"""What accepting a run did, in one line per file and metric that moved."""

from collections.abc import Iterable

from ci_perf.model import metrics
from ci_perf.model.summary import Numbers
from ci_perf.report import units


def render(files: Iterable[tuple[str, str, Numbers, Numbers, bool]]) -> str:
    """Render (action, path, headline before, headline after, whether the numerics changed).

    The headline before is empty for a new file.
    """
    lines: list[str] = []
    for action, path, before, after, changed_numerics in files:
        lines.append(f"{action:<9} {path}")
        if action != "kept":
            if changed_numerics:
                lines.append("          numerics: other losses, or another output")
            lines += [f"          {line}" for line in _moves(before, after)]
    return "\n".join(lines) if lines else "nothing to accept"


def _moves(before: Numbers, after: Numbers) -> Iterable[str]:
    for name in sorted(before.keys() | after.keys()):
        metric = metrics.BY_NAME[name]
        old, new = (
            units.value(side[name], metric.unit) if name in side else "none"
            for side in (before, after)
        )
        if not before:
            if after[name]:  # nothing was compiled: no news
                yield f"{metric.title}: {new}"
        elif old != new:
            yield f"{metric.title}: {old} → {new}{_percent(before, after, name)}"


def _percent(before: Numbers, after: Numbers, name: str) -> str:
    if not before.get(name) or name not in after:
        return ""
    return f" ({units.percent(after[name] / before[name] - 1)})"
