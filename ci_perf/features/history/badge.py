"""The badge of a branch: whether something moved lately that nobody accepted."""

from ci_perf.features.history import level_changes
from ci_perf.features.history.branch_history import BranchHistory
from ci_perf.report import page, units

_LABEL = "performance"
_GREEN, _GREY, _BLUE, _ORANGE = "#27712c", "#57606a", "#08589e", "#a63603"
# A branch with fewer has not shown that it is steady.
_FEWEST_SESSIONS = 5
_CHAR_PX, _PADDING_PX = 6.6, 10


def render(history: BranchHistory) -> str:
    """Draw the badge: no script, no request, no font but what the machine has."""
    message, color = _state(history)
    left, right = (round(len(text) * _CHAR_PX) + _PADDING_PX for text in (_LABEL, message))
    template = page.environment().get_template("badge.svg.jinja")
    sizes = {"left": left, "right": right, "padding": _PADDING_PX // 2}
    return template.render(label=_LABEL, message=message, color=color, **sizes)


def _state(history: BranchHistory) -> tuple[str, str]:
    recent = [cause for cause in level_changes.find_causes(history) if cause.is_recent]
    if unknown := sum(cause.is_worse and not cause.accepted for cause in recent):
        return f"{units.render_count(unknown, 'change')} accepted by nobody", _ORANGE
    if any(line.has_drifted for each in history.workloads for line in each.metrics):
        return "drifting", _ORANGE
    if recent:
        changes = units.render_count(len(recent), "change")
        return f"{changes} in {level_changes.RECENT_DAYS} days", _BLUE
    number = max(len(each.sessions) for each in history.workloads)
    color = _GREEN if number >= _FEWEST_SESSIONS else _GREY
    return f"steady over {units.render_count(number, 'session')}", color
