"""The one comment on a pull request: written once, up to date, and safe among several jobs.

Jobs of a matrix write one section each of the same comment, and GitHub has no way to write only if
nothing else was written meanwhile. So each job reads directly before it writes, looks again a
moment later, and writes again when another one was in between.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

from ci_perf.github import comments, sections
from ci_perf.github.client import Client
from ci_perf.github.comments import Comment
from ci_perf.github.failures import GithubError, Kind
from ci_perf.github.sections import Draft, Section

_TRIES = 6
# Longer than another job mostly needs from its reading to its writing.
_SETTLE_S = (0.75, 2.25)
# What is sent where GitHub finds the usual size too long.
_SIZES = (sections.MAX_BYTES, 30_000, 5_000)


class Outcome(Enum):
    """What became of a comment."""

    CREATED = "created"
    UPDATED = "updated"
    UNCHANGED = "unchanged"
    SKIPPED = "skipped"
    OUTDATED = "outdated"


@dataclass(frozen=True, slots=True, kw_only=True)
class Posted:
    """What became of a comment, and where it is; there may be none to lead to."""

    outcome: Outcome
    url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """What stands on the pull request now: our comments, oldest first, and all their sections."""

    client: Client
    pull: int
    key: str
    mine: list[Comment]
    every: tuple[Section, ...]

    @property
    def url(self) -> str:
        return self.mine[0].url if self.mine else ""

    def without_outdated(self, own: Sequence[Draft]) -> list[Draft]:
        """Leave out what a newer run has already reported."""
        ages = {one.name: one.age for one in self.every}
        return [draft for draft in own if ages.get(draft.name, draft.age) <= draft.age]


def put(
    client: Client,
    pull: int,
    key: str,
    own: Sequence[Draft],
    *,
    is_skippable: bool = False,
    settle: Callable[[], None] | None = None,
) -> Posted:
    """Bring the comment `key` up to date with `own`. Raises GithubError.

    A section that a newer run has written stays. Skippable: not worth the first comment.
    """
    wait = settle or (lambda: client.patience.sleep(random.uniform(*_SETTLE_S)))  # noqa: S311  only so that two jobs do not stay in step
    done: Outcome | None = None
    for _ in range(_TRIES):
        seen = _look(client, pull, key)
        current = seen.without_outdated(own)
        if not current:
            return Posted(outcome=Outcome.OUTDATED, url=seen.url)
        if is_skippable and not seen.mine:
            return Posted(outcome=Outcome.SKIPPED)
        if done is not None and _is_settled(seen, current):
            return Posted(outcome=done, url=seen.url)
        wrote = _write(seen, current)
        if wrote is Outcome.UNCHANGED:
            return Posted(outcome=done or wrote, url=seen.url)
        done = done or wrote
        wait()
    raise GithubError(
        f"{comments.what(pull)}: not there after {_TRIES} attempts; is GitHub unwell, or do other "
        "jobs write to it all the time? Then let one job report the whole matrix",
        kind=Kind.REFUSED,
    )


def _look(client: Client, pull: int, key: str) -> _Seen:
    mine = comments.find(client, pull, key)
    every = sections.newest(one for each in mine for one in sections.parse(each.body, key))
    return _Seen(client=client, pull=pull, key=key, mine=mine, every=every)


def _is_settled(seen: _Seen, own: Sequence[Draft]) -> bool:
    return len(seen.mine) == 1 and all(draft.is_in(seen.every) for draft in own)


def _write(seen: _Seen, own: Sequence[Draft]) -> Outcome:
    """Write what GitHub takes, into the oldest of our comments: all jobs decide for that one."""
    for max_bytes in _SIZES:
        body = sections.compose(seen.key, seen.every, own, max_bytes=max_bytes)
        try:
            return _send(seen, body)
        except GithubError as error:
            if max_bytes == _SIZES[-1] or not _is_too_long(error):
                raise
    raise AssertionError("the last size returns or raises")


def _send(seen: _Seen, body: str) -> Outcome:
    if not seen.mine:
        return _create(seen, body)
    first, *others = seen.mine
    if not others and _kept(first.body) == _kept(body):
        return Outcome.UNCHANGED
    what = comments.what(seen.pull)
    seen.client.change(f"/issues/comments/{first.id}", {"body": body}, what=what)
    for other in others:
        seen.client.remove(f"/issues/comments/{other.id}", what=what)
    return Outcome.UPDATED


def _create(seen: _Seen, body: str) -> Outcome:
    """Ask once: whether it was done where the answer is lost, the next look will tell."""
    try:
        seen.client.make(
            f"/issues/{seen.pull}/comments", {"body": body}, what=comments.what(seen.pull)
        )
    except GithubError as error:
        if error.kind is not Kind.UNANSWERED:
            raise
    return Outcome.CREATED


def _is_too_long(error: GithubError) -> bool:
    return error.status == 422 and "too long" in str(error).lower()


def _kept(body: str) -> str:
    """Return a body as GitHub keeps it."""
    return body.replace("\r\n", "\n").strip()
