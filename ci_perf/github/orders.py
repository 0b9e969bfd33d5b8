"""What a comment asks of us: a strict grammar, so that nothing is guessed. Pure.

    /ci-perf accept SHA [WORKLOAD…] ["REASON"]

on the first line. What follows on later lines is for people.

SHA is the commit, or at least its first 12 digits. An author can make two commits with the same
first digits, have one reviewed and push the other: 7 digits are 28 bits, which is minutes of work.
"""

import re
from dataclasses import dataclass

from ci_perf.errors import UsageError

USAGE = '/ci-perf accept SHA [WORKLOAD…] ["REASON"]'
# Less than a baseline has room for: who accepted it is added.
MAX_REASON_CHARS = 400
_MAX_LINE_CHARS = 2_000
_MAX_WORKLOADS = 50
_CALL = re.compile(r"/ci-perf(?![^ \t])")
_SHA = re.compile(r"[0-9a-f]{12,40}")
_WORKLOAD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.=+-]{0,199}")
# A phone writes quotes of its own.
_REASON = re.compile(r'[ \t]+(?:"([^"“”]*)"|“([^"“”]*)”)[ \t]*$')


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """Accept what was measured of the commit that begins `sha`; no workloads means all."""

    sha: str
    workloads: tuple[str, ...]
    reason: str


def is_one(body: str) -> bool:
    """Whether a comment speaks to us at all: by the first word of its first line."""
    return _CALL.match(_first_line(body)) is not None


def parse(body: str) -> Order:
    """Understand a comment that speaks to us. Raises UsageError: it says what is wrong."""
    line = _first_line(body)
    if len(line) > _MAX_LINE_CHARS:
        raise _wrong(f"a line of at most {_MAX_LINE_CHARS:,} characters", "a longer one")
    reason, line = _reason(line)
    _, verb, sha, *workloads = [*line.split(), "", "", ""][: max(3, len(line.split()))]
    if verb != "accept":
        raise _wrong("accept", verb or "nothing")
    if not _SHA.fullmatch(sha):
        raise _wrong("12 to 40 digits of the commit, in small letters", sha or "nothing")
    for one in workloads:
        if not _WORKLOAD.fullmatch(one):
            raise _wrong("the name of a workload, or a reason in quotes", one)
    if len(workloads) > _MAX_WORKLOADS:
        raise _wrong(f"at most {_MAX_WORKLOADS} workloads; none means all", f"{len(workloads)}")
    return Order(sha=sha, workloads=tuple(workloads), reason=reason)


def _reason(line: str) -> tuple[str, str]:
    """Take the reason off the end of a line."""
    found = _REASON.search(line)
    if found is None:
        return "", line
    reason = (found[1] or found[2] or "").strip()
    if not reason or not reason.isprintable():
        raise _wrong("a reason in words", "one that cannot be read")
    if len(reason) > MAX_REASON_CHARS:
        raise _wrong(f"a reason of at most {MAX_REASON_CHARS} characters", f"{len(reason)}")
    return reason, line[: found.start()]


def _first_line(body: str) -> str:
    return re.split(r"\r\n|\r|\n", body, maxsplit=1)[0]


def _wrong(expected: str, found: str) -> UsageError:
    return UsageError(f"expected {expected}, found {found[:80]!r}; write: {USAGE}")
