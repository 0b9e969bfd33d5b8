"""What other sites show of a branch's history: a badge, and a feed of what moved."""

import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from ci_perf.model.history import BranchHistory
from ci_perf.report import branch_history, level_changes, page, phrases, units
from ci_perf.report.escape import clean
from ci_perf.report.level_changes import RECENT_DAYS, SharedCause

LABEL = "performance"
# Of newer entries alone a reader is told.
_MOST_ENTRIES = 50
# The colours of shields.io by name, for our own picture with enough contrast to white.
_COLORS = {
    "brightgreen": "#27712c",
    "lightgrey": "#57606a",
    "blue": "#08589e",
    "orange": "#a63603",
}
# A branch with fewer has not shown that it is steady.
_FEWEST_SESSIONS = 5
_CHAR_PX = 6.6
_PADDING_PX = 10


@dataclass(frozen=True, slots=True)
class _Badge:
    message: str
    color: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedEntry:
    """One cause, as a reader of feeds shows it."""

    id: str
    title: str
    updated: str
    author: str
    address: str
    content: str


def badge_svg(history: BranchHistory) -> str:
    """Draw the badge: no script, no request, no font but what the machine has."""
    badge = _badge(history)
    left, right = (round(len(text) * _CHAR_PX) + _PADDING_PX for text in (LABEL, badge.message))
    return _rendered(
        "badge.svg.jinja",
        label=LABEL,
        message=badge.message,
        color=_COLORS[badge.color],
        left=left,
        right=right,
        padding=_PADDING_PX // 2,
    )


def badge_json(history: BranchHistory) -> str:
    """Return the badge as https://shields.io/badges/endpoint-badge reads it."""
    badge = _badge(history)
    said = {
        "schemaVersion": 1,
        "label": LABEL,
        "message": badge.message,
        "color": badge.color,
    }
    return json.dumps(said, indent=1) + "\n"


def _badge(history: BranchHistory) -> _Badge:
    recent = level_changes.recent(level_changes.causes(history))
    unknown = sum(cause.is_worse and not cause.accepted for cause in recent)
    if unknown:
        changes = units.numbered(unknown, "change")
        return _Badge(f"{changes} accepted by nobody", "orange")
    if any(line.has_drifted for each in history.workloads for line in each.metrics):
        return _Badge("drifting", "orange")
    if recent:
        changes = units.numbered(len(recent), "change")
        return _Badge(f"{changes} in {RECENT_DAYS} days", "blue")
    number = max(len(each.sessions) for each in history.workloads)
    color = "brightgreen" if number >= _FEWEST_SESSIONS else "lightgrey"
    return _Badge(f"steady over {units.numbered(number, 'session')}", color)


def feed(history: BranchHistory) -> str:
    """Return an Atom feed (RFC 4287) of what moved, newest first."""
    causes = level_changes.causes(history)[:_MOST_ENTRIES]
    updated = causes[0].commit.date if causes else history.commits[0].date
    return _rendered(
        "feed.xml.jinja",
        id=_id(history, history.ref),
        title=f"Performance of {_name(history)}",
        updated=updated,
        entries=[_entry(history, cause) for cause in causes],
    )


def _name(history: BranchHistory) -> str:
    return clean("/".join(history.repository_url.split("/")[-2:]) or history.ref)


def _entry(history: BranchHistory, cause: SharedCause) -> FeedEntry:
    url = history.repository_url
    kind = "accepted" if cause.accepted else "seen"
    by = _plain(branch_history.accepted_by(cause))
    return FeedEntry(
        id=_id(history, cause.machine, cause.suite, cause.run, kind),
        title=f"{_plain(branch_history.moves_phrase(cause))} on {clean(cause.machine)}",
        updated=cause.commit.date,
        author=clean(cause.commit.author) or "unknown",
        address=f"{url}/commit/{cause.commit.id}" if url else "",
        content=f"Accepted by {by}. Commit {cause.commit.id}.",
    )


def _plain(phrase: Sequence[str]) -> str:
    return phrases.plain(tuple(phrase))


def _id(history: BranchHistory, *parts: str) -> str:
    """Return a name that stays the same as long as its parts do."""
    name = "\0".join((history.repository_url, *parts)).encode(errors="replace").decode()
    return uuid.uuid5(uuid.NAMESPACE_URL, name).urn


def _rendered(name: str, **values: object) -> str:
    return page.environment().get_template(name).render(values)
