"""The API of one repository, through PyGithub; the token stays where nobody prints it.

PyGithub carries the requests. Its objects fetch on their own what they were not given, so that a
job needs more permissions than it has; our answers are a few typed keys instead.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from ci_perf.errors import CiPerfError
from ci_perf.github import downloads, failures, retry
from ci_perf.github.retry import Patience
from ci_perf.version import __version__

if TYPE_CHECKING:
    from github.Requester import Requester

T = TypeVar("T")

API_URL = "https://api.github.com"
# An answer takes a second; a proxy that swallows requests is noticed after this.
_TIMEOUT_S = 30
_PER_PAGE = 100  # the most that GitHub gives at once
# More than any pull request has of anything; an answer that never ends must not keep us.
_MAX_PAGES = 300
# GitHub's advice against its secondary limits.
_BETWEEN_WRITES_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Where to ask, about which repository, and as whom."""

    repository: str
    token: str = field(repr=False)
    api_url: str = API_URL


class MissingError(CiPerfError):
    """There is nothing to talk to GitHub with: no token, or no PyGithub."""


class Made(msgspec.Struct, frozen=True):
    """What GitHub says of everything that it has made or changed for us."""

    id: int
    html_url: str | None = None


class _Answer(msgspec.Struct):
    data: object = None
    errors: list[dict[str, object]] | None = None


class Client:
    """Asks about one repository. Every method raises GithubError, whose message begins `what`."""

    def __init__(
        self,
        access: Access,
        *,
        patience: Patience | None = None,
        timeout_s: int = _TIMEOUT_S,
    ) -> None:
        self.patience = patience or Patience()
        self.owner, _, self.name = access.repository.partition("/")
        self._access, self._timeout_s = access, timeout_s
        self._requester = _connect(access, timeout_s)

    def get(self, path: str, kind: type[T], *, what: str, **parameters: str | int) -> T:
        """Look up one thing below the repository."""
        return self._ask("GET", path, kind, what=what, parameters=parameters)

    def pages(self, path: str, kind: type[T], *, what: str, **parameters: str | int) -> list[T]:
        """Look up all of a list, however many pages it has."""
        found: list[T] = []
        of_kind: type[list[T]] = list[kind]  # type: ignore[valid-type]  # known at run time only
        for page in range(1, _MAX_PAGES + 1):
            counted = {**parameters, "per_page": _PER_PAGE, "page": page}
            more = self._ask("GET", path, of_kind, what=what, parameters=counted)
            found += more
            if len(more) < _PER_PAGE:
                break
        return found

    def make(
        self, path: str, body: dict[str, Any], *, what: str, is_repeatable: bool = False
    ) -> Made:
        """Make something: not twice, so an answer that is lost is an error."""
        return self._ask("POST", path, Made, what=what, body=body, is_repeatable=is_repeatable)

    def change(self, path: str, body: dict[str, Any], *, what: str) -> Made:
        """Change something to what it shall be, which may be done twice."""
        return self._ask("PATCH", path, Made, what=what, body=body)

    def remove(self, path: str, *, what: str) -> None:
        """Remove something; that it is gone already is well."""
        try:
            self._ask("DELETE", path, msgspec.Raw, what=what)
        except failures.GithubError as error:
            if error.status != 404:
                raise

    def download(self, path: str, *, what: str, max_bytes: int) -> bytes:
        """Fetch a file that GitHub keeps on another host, which must never see the token."""
        url = f"{self._access.api_url.rstrip('/')}/repos/{self.owner}/{self.name}{path}"
        return retry.call(
            lambda: downloads.fetch(url, self._access.token, self._timeout_s, max_bytes=max_bytes),
            what=what,
            is_repeatable=True,
            patience=self.patience,
        )

    def query(self, document: str, kind: type[T], *, what: str, **variables: object) -> T:
        """Ask by GraphQL what changes nothing, or nothing when it is asked again."""
        asked = {"query": document, "variables": dict(variables)}
        url = self._requester.graphql_url
        found = retry.call(
            lambda: self._requester.requestJsonAndCheck("POST", url, input=asked)[1],
            what=what,
            is_repeatable=True,
            patience=self.patience,
        )
        answer = _convert(found, _Answer, what)
        if answer.errors:
            raise failures.in_answer(what, answer.errors)
        return _convert(answer.data, kind, what)

    def _ask(
        self,
        verb: str,
        path: str,
        kind: type[T],
        *,
        what: str,
        parameters: dict[str, Any] | None = None,
        body: dict[str, Any] | None = None,
        is_repeatable: bool = True,
    ) -> T:
        url = f"/repos/{self.owner}/{self.name}{path}"
        data = retry.call(
            lambda: self._requester.requestJsonAndCheck(verb, url, parameters, input=body)[1],
            what=what,
            is_repeatable=is_repeatable,
            patience=self.patience,
        )
        return _convert(data, kind, what)


def _convert(data: object, kind: type[T], what: str) -> T:
    """Check an answer like any other data: a proxy may have given it, or a redirection."""
    if kind is msgspec.Raw:
        return kind()
    try:
        return msgspec.convert(data, kind)
    except msgspec.ValidationError:
        raise failures.odd(what) from None


def _connect(access: Access, timeout_s: int) -> "Requester":
    if not access.token:
        raise MissingError(
            "GITHUB_TOKEN: expected the token of the job, found none; give the step "
            "`env: GITHUB_TOKEN: ${{ github.token }}`"
        )
    try:
        from github import Auth, Github
    except ImportError:
        raise MissingError(
            "PyGithub is not installed; next: `pip install '.[report]'` in a checkout of ci_perf"
        ) from None
    return Github(
        auth=Auth.Token(access.token),
        base_url=access.api_url.rstrip("/"),
        timeout=timeout_s,
        user_agent=f"ci-perf/{__version__}",
        per_page=_PER_PAGE,
        retry=None,  # ours is in retry.py: that of PyGithub repeats what was done already
        seconds_between_requests=0,
        seconds_between_writes=_BETWEEN_WRITES_S,
        lazy=True,
    ).requester
