"""Our issues: which are ours, who may be assigned, and who owns a file; no issue is judged here."""

import re
from collections.abc import Iterable, Sequence
from urllib.parse import quote

import msgspec

from ci_perf.errors import InvalidFileError
from ci_perf.github import commits
from ci_perf.github.answers import Account, Numbered
from ci_perf.github.client import Client, GithubError

_QUERY = "query { viewer { login } }"
_PLACES = (".github/CODEOWNERS", "CODEOWNERS", "docs/CODEOWNERS")
_OWNER = re.compile(r"@?(?P<name>[A-Za-z0-9-]{1,39}(?P<team>/[A-Za-z0-9_.-]{1,100})?)")
_WILDCARD = re.compile(r"(\*\*/|\*\*|\*|\?)")
_WILDCARDS = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}


class Issue(msgspec.Struct, frozen=True):
    """An issue, or a pull request, which GitHub lists as well."""

    number: int
    title: str
    state: str
    body: str | None = None
    user: Account | None = None
    pull_request: dict[str, object] | None = None


class _Viewer(msgspec.Struct):
    viewer: Account


class _Commit(msgspec.Struct):
    sha: str
    author: Account | None = None
    parents: list[dict[str, object]] = []


class _File(msgspec.Struct):
    sha: str


def list_own(client: Client) -> list[Issue]:
    """List the issues of whoever holds the token, oldest first. Raises GithubError."""
    login = client.query(_QUERY, _Viewer, what="our issues").viewer.login
    listed = client.pages("/issues", Issue, what="our issues", state="all", creator=login)
    mine = [each for each in listed if each.user and each.user.login == login]
    return sorted((each for each in mine if each.pull_request is None), key=lambda it: it.number)


def is_root(client: Client, sha: str) -> bool:
    """Whether a commit is the first of this repository. Raises GithubError."""
    commit = _find_commit(client, sha)
    return commit is not None and not commit.parents


def find_author(client: Client, sha: str) -> str:
    """Return the login of a commit's author; empty for a bot, or where GitHub knows none."""
    commit = _find_commit(client, sha)
    author = commit.author if commit else None
    return author.login if author and author.type != "Bot" else ""


def _find_commit(client: Client, sha: str) -> _Commit | None:
    try:
        return client.get(f"/commits/{sha}", _Commit, what=f"commit {sha[:12]}")
    except GithubError as error:
        if error.status not in {404, 422}:
            raise
        return None


def list_pulls(client: Client, sha: str) -> list[int]:
    """Return the pull requests that brought a commit. Raises GithubError."""
    what = f"pull requests of commit {sha[:12]}"
    return [each.number for each in client.pages(f"/commits/{sha}/pulls", Numbered, what=what)]


def choose_owners(client: Client, groups: Iterable[Sequence[str]]) -> tuple[list[str], list[str]]:
    """Return whom to assign and which teams to mention, of the first group with any of either.

    GitHub assigns people alone, and only those whom it lets work here. Raises GithubError.
    """
    for group in groups:
        known = [match for owner in group if (match := _OWNER.fullmatch(owner))]
        people = [match["name"] for match in known if not match["team"]]
        assigned = [login for login in people if _is_assignable(client, login)]
        teams = [f"@{match['name']}" for match in known if match["team"]]
        if assigned or teams:
            return assigned[:10], teams  # GitHub takes no more
    return [], []


def _is_assignable(client: Client, login: str) -> bool:
    try:
        client.get(f"/assignees/{login}", msgspec.Raw, what=f"assignee {login}")
    except GithubError as error:
        if error.status != 404:
            raise
        return False
    return True


def find_file_owners(client: Client, ref: str, file: str) -> list[str]:
    """Return who owns a file by CODEOWNERS of a commit. Raises GithubError."""
    for place in _PLACES:
        try:
            listed = client.get(f"/contents/{quote(place)}", _File, what=place, ref=ref)
            text = commits.read_blob(client, listed.sha, what=place).decode(errors="replace")
        except InvalidFileError:
            return []
        except GithubError as error:
            if error.status != 404:
                raise
            continue
        return read_owners(text, file)
    return []


def read_owners(text: str, file: str) -> list[str]:
    """Return the owners of a file: the last pattern that matches it decides."""
    owners: list[str] = []
    for line in text.splitlines():
        pattern, *named = line.partition("#")[0].split() or [""]
        if pattern and _make_pattern(pattern).fullmatch(file):
            owners = named
    return owners


def _make_pattern(pattern: str) -> re.Pattern[str]:
    """Read a pattern as .gitignore does; a folder owns all in it, `folder/*` its files alone."""
    inner = pattern.strip("/")
    start = "" if "/" in pattern.rstrip("/") else "(?:.*/)?"
    body = "".join(_WILDCARDS.get(part, re.escape(part)) for part in _WILDCARD.split(inner))
    end = "/.+" if pattern.endswith("/") else "" if inner.endswith("/*") else "(?:/.+)?"
    return re.compile(start + body + end)
