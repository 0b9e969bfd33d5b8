"""Which repository a clone belongs to, and where its API is. Pure."""

import re
from collections.abc import Mapping

from ci_perf.errors import UsageError
from ci_perf.github.client import API_URL, Access

# What a clone says of where it comes from: https://…, ssh://git@…, git@…:…
_REMOTE = re.compile(
    r"(?:https?://(?:[^@/\s]*@)?|ssh://(?:[^@/\s]*@)?|(?:[^@/:\s]+@))"
    r"(?P<host>[A-Za-z0-9.-]+)(?::[0-9]+(?=/))?[:/]+"
    r"(?P<name>[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+?)(?:\.git)?/?"
)
_NAME = re.compile(r"[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+")
_GITHUB = "github.com"
# The first that is set; the command line tool of GitHub knows the same ones.
_TOKENS = ("GH_TOKEN", "GITHUB_TOKEN")


def repository(environment: Mapping[str, str]) -> str:
    """Return the repository that a job runs in. Raises UsageError."""
    found = environment.get("GITHUB_REPOSITORY", "")
    if not _NAME.fullmatch(found):
        raise UsageError(
            f"GITHUB_REPOSITORY: expected OWNER/NAME, found {found[:80]!r}; this runs in a job of "
            "GitHub Actions"
        )
    return found


def access(environment: Mapping[str, str], remote: str) -> Access:
    """Say whom to ask about which repository, as whom. `remote` is the address of `origin`.

    A token is sent to github.com, or to the host that GITHUB_API_URL names, and never to one that
    only a clone names. Raises UsageError.
    """
    api_url = environment.get("GITHUB_API_URL", "")
    repository = environment.get("GITHUB_REPOSITORY") or _of(remote, is_anywhere=bool(api_url))
    if not _NAME.fullmatch(repository):
        raise UsageError(
            "expected a clone whose remote `origin` is on GitHub, found none; say which repository "
            "it is: GITHUB_REPOSITORY=OWNER/NAME (and GITHUB_API_URL, for a server of your own)"
        )
    token = next(filter(None, map(environment.get, _TOKENS)), "")
    if not token:
        raise UsageError(
            "expected a token in GH_TOKEN, found none; with GitHub's own tool: "
            "GH_TOKEN=$(gh auth token)"
        )
    return Access(repository=repository, token=token, api_url=api_url or API_URL)


def _of(remote: str, *, is_anywhere: bool) -> str:
    found = _REMOTE.fullmatch(remote.strip())
    is_known = found is not None and (is_anywhere or found["host"].lower() == _GITHUB)
    return found["name"] if found and is_known else ""
