"""Which repository to ask GitHub about, where, and with which token. Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from ci_perf.errors import UsageError

API_URL = "https://api.github.com"
# The address of `origin` in a clone: https://…, ssh://git@…, git@…:…
_REMOTE = re.compile(
    r"(?:https?://(?:[^@/\s]*@)?|ssh://(?:[^@/\s]*@)?|(?:[^@/:\s]+@))"
    r"(?P<host>[A-Za-z0-9.-]+)(?::[0-9]+(?=/))?[:/]+"
    r"(?P<name>[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+?)(?:\.git)?/?"
)
_NAME = re.compile(r"[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+")
_GITHUB = "github.com"
# The first that is set; the command line tool of GitHub knows the same ones.
_TOKENS = ("GH_TOKEN", "GITHUB_TOKEN")


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """The repository to ask about, the token to ask with, and the address of the API."""

    repository: str
    token: str = field(repr=False)
    api_url: str = API_URL


def job_repository(environment: Mapping[str, str]) -> str:
    """Return the repository that a job runs in. Raises UsageError."""
    repository = environment.get("GITHUB_REPOSITORY", "")
    if not _NAME.fullmatch(repository):
        raise UsageError(
            f"GITHUB_REPOSITORY: expected OWNER/NAME, found {repository[:80]!r}; this runs "
            "in a job of GitHub Actions"
        )
    return repository


def of_job(environment: Mapping[str, str], repository: str) -> Access:
    """Return the access of a job of GitHub Actions; without GITHUB_TOKEN its token is empty."""
    return Access(
        repository=repository,
        token=environment.get("GITHUB_TOKEN", ""),
        api_url=environment.get("GITHUB_API_URL") or API_URL,
    )


def of_clone(environment: Mapping[str, str], remote: str) -> Access:
    """Return the access of a person with a clone. `remote` is the address of its `origin`.

    The token is sent to github.com or to the host that GITHUB_API_URL names, never to a host that
    only the clone names. Raises UsageError.
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
    address = _REMOTE.fullmatch(remote.strip())
    is_known = address is not None and (is_anywhere or address["host"].lower() == _GITHUB)
    return address["name"] if address and is_known else ""
