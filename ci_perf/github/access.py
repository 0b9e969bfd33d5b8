"""Access to one repository: where, by which token, and its API, through PyGithub.

PyGithub carries the requests. Its objects fetch on their own what they were not given, so that a
job needs more permissions than it has; our answers are a few typed keys instead.

A download is two requests of our own: GitHub names another host, which gives the file. That host
refuses a request that shows a token, and must not see ours.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

import msgspec

from ci_perf.errors import CiPerfError, InvalidFileError, UsageError
from ci_perf.github import failures
from ci_perf.github.failures import RetryPolicy
from ci_perf.version import __version__

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


if TYPE_CHECKING:
    from github.Requester import Requester
    from requests import PreparedRequest, Response

T = TypeVar("T")

# An answer takes a second; a proxy that swallows requests is noticed after this.
_TIMEOUT_S = 30
_PER_PAGE = 100  # the most that GitHub gives at once
# More than any pull request has of anything; an answer that never ends must not keep us.
_MAX_PAGES = 300
_REDIRECTIONS = {302, 307}
_CHUNK_BYTES = 2**16
_USER_AGENT = f"ci-perf/{__version__}"


class MissingError(CiPerfError):
    """There is nothing to talk to GitHub with: no token, or no PyGithub."""


class Resource(msgspec.Struct, frozen=True):
    """What GitHub answers of everything that it has made or changed for us."""

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
        retries: RetryPolicy | None = None,
        timeout_s: int = _TIMEOUT_S,
    ) -> None:
        self.retries = retries or RetryPolicy()
        self.owner, _, self.name = access.repository.partition("/")
        self._access, self._timeout_s = access, timeout_s
        self._requester = _connect(access, timeout_s, self.retries.between_writes_s)

    def get(self, path: str, kind: type[T], *, what: str, **parameters: str | int) -> T:
        """Look up one thing below the repository."""
        return self._ask("GET", path, kind, what=what, parameters=parameters)

    def pages(self, path: str, kind: type[T], *, what: str, **parameters: str | int) -> list[T]:
        """Look up all of a list, however many pages it has."""
        entries: list[T] = []
        of_kind: type[list[T]] = list[kind]  # type: ignore[valid-type]  # known at run time only
        for page in range(1, _MAX_PAGES + 1):
            counted = {**parameters, "per_page": _PER_PAGE, "page": page}
            more = self._ask("GET", path, of_kind, what=what, parameters=counted)
            entries += more
            if len(more) < _PER_PAGE:
                break
        return entries

    def make(
        self, path: str, body: dict[str, Any], *, what: str, is_repeatable: bool = False
    ) -> Resource:
        """Make something. It is not made twice, so a lost answer is an error."""
        return self._ask("POST", path, Resource, what=what, body=body, is_repeatable=is_repeatable)

    def change(self, path: str, body: dict[str, Any], *, what: str) -> Resource:
        """Change something to what it shall be; that may be done twice."""
        return self._ask("PATCH", path, Resource, what=what, body=body)

    def remove(self, path: str, *, what: str) -> None:
        """Remove something; it may be gone already."""
        try:
            self._ask("DELETE", path, msgspec.Raw, what=what)
        except failures.GithubError as error:
            if error.status != 404:
                raise

    def download(self, path: str, *, what: str, max_bytes: int) -> bytes:
        """Fetch a file that GitHub keeps on another host, which must never see the token."""
        url = f"{self._access.api_url.rstrip('/')}/repos/{self.owner}/{self.name}{path}"
        return failures.retry(
            lambda: _fetch(url, self._access.token, self._timeout_s, max_bytes=max_bytes),
            what=what,
            is_repeatable=True,
            policy=self.retries,
        )

    def query(self, document: str, kind: type[T], *, what: str, **variables: object) -> T:
        """Send a GraphQL query, or a mutation that does nothing when it is sent again."""
        asked = {"query": document, "variables": dict(variables)}
        url = self._requester.graphql_url
        data = failures.retry(
            lambda: self._requester.requestJsonAndCheck("POST", url, input=asked)[1],
            what=what,
            is_repeatable=True,
            policy=self.retries,
        )
        answer = _convert(data, _Answer, what)
        if answer.errors:
            raise failures.from_graphql(what, answer.errors)
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
        data = failures.retry(
            lambda: self._requester.requestJsonAndCheck(verb, url, parameters, input=body)[1],
            what=what,
            is_repeatable=is_repeatable,
            policy=self.retries,
        )
        return _convert(data, kind, what)


def _convert(data: object, kind: type[T], what: str) -> T:
    """Check the answer's shape: it may come from a proxy, or from a redirection."""
    if kind is msgspec.Raw:
        return kind()
    try:
        return msgspec.convert(data, kind)
    except msgspec.ValidationError:
        raise failures.unexpected_answer(what) from None


def _connect(access: Access, timeout_s: int, between_writes_s: float) -> "Requester":
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
        user_agent=_USER_AGENT,
        per_page=_PER_PAGE,
        retry=None,  # failures.retry is used: PyGithub's own retry repeats what was done already
        seconds_between_requests=0,
        seconds_between_writes=between_writes_s,
        lazy=True,
    ).requester


def _fetch(url: str, token: str, timeout_s: int, *, max_bytes: int) -> bytes:
    """Return the file. Raises what requests and PyGithub raise, and InvalidFileError: too large."""
    import requests

    headers = {"User-Agent": _USER_AGENT, "Accept": "application/vnd.github+json"}
    # Given so, a .netrc of the runner's user cannot put another token in its place.
    with requests.get(
        url, headers=headers, auth=_bearer(token), allow_redirects=False, timeout=timeout_s
    ) as asked:
        place = _place(asked, url)
    with requests.get(
        place, headers={"User-Agent": _USER_AGENT}, auth=_as_nobody, timeout=timeout_s, stream=True
    ) as response:
        if response.status_code != requests.codes.ok:
            raise _refusal(response)
        return _whole(response, max_bytes)


def _place(asked: "Response", url: str) -> str:
    """Return the address that GitHub names; never from an encrypted connection to an open one."""
    place = asked.headers.get("Location", "")
    if asked.status_code not in _REDIRECTIONS:
        raise _refusal(asked)
    if urlsplit(place).scheme not in {"https", urlsplit(url).scheme}:
        raise AssertionError(
            "an address that is no page of the web"
        )  # failures.from_exception says so
    return place


def _whole(response: "Response", max_bytes: int) -> bytes:
    data = bytearray()
    for chunk in response.iter_content(_CHUNK_BYTES):
        data += chunk
        if len(data) > max_bytes:
            raise InvalidFileError(f"expected at most {max_bytes // 2**20} MiB, found more")
    return bytes(data)


def _refusal(response: "Response") -> Exception:
    """Return a refusal as PyGithub's exception, so that failures handles both alike."""
    from github import GithubException

    try:
        said = response.json()
    except ValueError:
        said = None
    return GithubException(response.status_code, said, dict(response.headers))


def _bearer(token: str) -> "Callable[[PreparedRequest], PreparedRequest]":
    def sign(request: "PreparedRequest") -> "PreparedRequest":
        request.headers["Authorization"] = f"Bearer {token}"
        return request

    return sign


def _as_nobody(request: "PreparedRequest") -> "PreparedRequest":
    return request
