"""Orders of a comment that start a run: what may be written, who may ask, and the start itself.

The bot has checked that the author may write, and that the commit is the head. No word of a comment
is part of a script: each matches a strict pattern, and a workflow reads it from its environment.
"""

import re
from dataclasses import dataclass

from ci_perf.errors import RefusedError
from ci_perf.github import runs
from ci_perf.github.answers import PullRequest
from ci_perf.github.client import Client, GithubError
from ci_perf.report.escape import Phrase, Words
from ci_perf.report.sentences import say

USAGES = (
    "/ci-perf run SHA [WORKLOAD…]",
    "/ci-perf more SHA",
    "/ci-perf explain SHA WORKLOAD…",
    "/ci-perf bisect SHA GOOD WORKLOAD",
)
# No option begins so, and no expression of a shell or of git has one of its other characters.
WORD = r"[A-Za-z0-9_][A-Za-z0-9_.=+-]{0,199}"
_ORDER = re.compile(
    r"/ci-perf[ \t]+(?P<verb>run|more|explain|bisect)[ \t]+(?P<sha>[0-9a-f]{12,40})"
    rf"(?P<names>(?:[ \t]+{WORD}){{0,50}})[ \t]*"
)
# The fewest and the most names of each.
_NAMES = {"run": (0, 50), "more": (0, 0), "explain": (1, 50), "bisect": (2, 2)}
_URL = re.compile(r"https?://[A-Za-z0-9_.:\[\]/-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Workflows:
    """Which workflow file does what, and the address of the repository's ``page``.

    ``more`` repeats a run of ``measuring``; ``branch`` has the file ``asked``, which does the rest.
    """

    measuring: str
    asked: str
    branch: str
    page: str


def read(line: str) -> re.Match[str] | None:
    """Return the verb, the commit and the names of an order; `None` where it is none."""
    order = _ORDER.fullmatch(line)
    if order is None:
        return None
    fewest, most = _NAMES[order["verb"]]
    return order if fewest <= len(order["names"].split()) <= most else None


def start(
    client: Client,
    pull: PullRequest,
    order: re.Match[str],
    *,
    login: str,
    by: Workflows,
) -> Phrase:
    """Start what `login` orders, on that very commit; say where to look. Raises RefusedError."""
    _check_second_writer(pull, login)
    try:
        if order["verb"] == "more":
            run = runs.find_run_of_commit(client, pull, workflow=by.measuring)
            runs.repeat(client, run)
            url = run.html_url
        else:
            inputs = {
                "verb": order["verb"],
                "sha": pull.head.sha,
                "base": pull.base.sha,
                "names": " ".join(order["names"].split()),
                "fork": str(pull.is_fork).lower(),
            }
            url = runs.dispatch(client, by.asked, branch=by.branch, inputs=inputs)
    except GithubError as error:
        hint = "; it may run all the same: look at the runs first" if error.is_unanswered else ""
        raise RefusedError(f"{error}{hint}") from None
    url = url or f"{by.page}/actions/workflows/{by.asked.rpartition('/')[2]}"
    return say(
        "started",
        login=login,
        verb=Words(order["verb"]),
        sha=pull.head.sha,
        url=Words(url if _URL.fullmatch(url) else ""),
    )


def _check_second_writer(pull: PullRequest, login: str) -> None:
    """Refuse the author of a fork: nobody else has read that commit. Raises RefusedError."""
    owner = pull.head.repo and pull.head.repo.owner
    authors = {author.login.lower() for author in (pull.user, owner) if author}
    if pull.is_fork and login.lower() in authors:
        raise RefusedError(
            f"pull request {pull.number}: expected a second person for a commit of a fork, found "
            "its author; somebody else who may push must read it, and ask"
        )
