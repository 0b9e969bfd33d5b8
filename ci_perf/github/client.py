"""Access to one repository on GitHub: where, by which token, and its API, through PyGithub.

PyGithub carries the requests and repeats them. Its objects fetch on their own what they were not
given, so that a job needs more permissions than it has; our answers are a few typed keys instead.

A download is two requests of our own: GitHub names another host, which gives the file. That host
refuses a request that shows a token, and must not see ours.
"""

import contextlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

import msgspec

from ci_perf.errors import CiPerfError, InvalidFileError, UsageError
from ci_perf.version import __version__

if TYPE_CHECKING:
    from github.GithubRetry import GithubRetry
    from requests import PreparedRequest, Response
    from urllib3 import Retry as UrllibRetry

T = TypeVar("T")

API_URL = "https://api.github.com"
# The address of `origin` in a clone: https://…, ssh://git@…, git@…:…
_REMOTE = re.compile(
    r"(?:https?://(?:[^@/\s]*@)?|ssh://(?:[^@/\s]*@)?|(?:[^@/:\s]+@))"
    r"(?P<host>[A-Za-z0-9.-]+)(?::[0-9]+(?=/))?[:/]+"
    r"(?P<name>[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+?)(?:\.git)?/?"
)
_NAME = re.compile(r"[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+")
# An answer takes a second; a proxy that swallows requests is noticed after this.
_TIMEOUT_S = 30
_PER_PAGE = 100  # the most that GitHub gives at once
# More than any pull request has of anything; an answer that never ends must not keep us.
_MAX_PAGES = 300
# GitHub asks for a minute after a secondary limit that names no time. The runner waits as long.
_LONGEST_WAIT_S = 60
_CHUNK_BYTES = 2**16
_USER_AGENT = f"ci-perf/{__version__}"
_MAX_CHARS = 200
_LIMITED = re.compile(r"rate limit|abuse detection|wait a few minutes", re.IGNORECASE)
_UNSEEN = re.compile(r"[^\x20-\x7e\xa0-\uffff]+")
_CURES = {
    401: ": the token is not accepted; GITHUB_TOKEN must be that of this job",
    403: ": no permission; give the job what docs/github.md lists (on a pull request from a fork "
    "or of Dependabot a token may only read)",
    404: ": not found; does GITHUB_TOKEN belong to this repository?",
}


class GithubError(CiPerfError):
    """GitHub did not do what it was asked for.

    ``status`` is that of HTTP, 0 where there was none. ``is_unanswered``: nobody knows whether it
    was done.
    """

    def __init__(self, message: str, *, status: int = 0, is_unanswered: bool = False) -> None:
        super().__init__(message)
        self.status, self.is_unanswered = status, is_unanswered


class MissingError(CiPerfError):
    """There is nothing to talk to GitHub with: no token, or no PyGithub."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """The repository to ask about, the token to ask with, and the address of the API."""

    repository: str
    token: str = field(repr=False)
    api_url: str = API_URL

    @classmethod
    def from_job(cls, environment: Mapping[str, str]) -> "Access":
        """Return the access of a job, whose token may be missing. Raises UsageError."""
        repository = environment.get("GITHUB_REPOSITORY", "")
        if not _NAME.fullmatch(repository):
            raise UsageError(
                f"GITHUB_REPOSITORY: expected OWNER/NAME, found {repository[:80]!r}; this runs "
                "in a job of GitHub Actions"
            )
        token = environment.get("GITHUB_TOKEN", "")
        api_url = environment.get("GITHUB_API_URL") or API_URL
        return cls(repository=repository, token=token, api_url=api_url)

    @classmethod
    def from_clone(cls, environment: Mapping[str, str], remote: str) -> "Access":
        """Return the access of a person with a clone. `remote` is the address of its `origin`.

        The token is sent to github.com or to the host that GITHUB_API_URL names, never to a host
        that only the clone names. Raises UsageError.
        """
        api_url = environment.get("GITHUB_API_URL", "")
        repository = environment.get("GITHUB_REPOSITORY", "")
        if not repository and (address := _REMOTE.fullmatch(remote.strip())):
            is_known = bool(api_url) or address["host"].lower() == "github.com"
            repository = address["name"] if is_known else ""
        if not _NAME.fullmatch(repository):
            raise UsageError(
                "expected a clone whose remote `origin` is on GitHub, found none; say which "
                "repository it is: GITHUB_REPOSITORY=OWNER/NAME (and GITHUB_API_URL, for a server "
                "of your own)"
            )
        token = environment.get("GH_TOKEN") or environment.get("GITHUB_TOKEN")
        if not token:
            raise UsageError(
                "expected a token in GH_TOKEN, found none; with GitHub's own tool: "
                "GH_TOKEN=$(gh auth token)"
            )
        return cls(repository=repository, token=token, api_url=api_url or API_URL)


class Resource(msgspec.Struct, frozen=True):
    """What GitHub answers of everything that it has made or changed for us."""

    id: int
    html_url: str | None = None


class _GraphqlAnswer(msgspec.Struct):
    data: object = None
    errors: list[dict[str, object]] | None = None


class Client:
    """Asks about one repository. Every method raises GithubError, whose message begins `what`."""

    def __init__(self, access: Access, *, timeout_s: int = _TIMEOUT_S) -> None:
        if not access.token:
            raise MissingError(
                "GITHUB_TOKEN: expected the token of the job, found none; give the step "
                "`env: GITHUB_TOKEN: ${{ github.token }}`"
            )
        try:
            from github import Auth, Github
        except ImportError:
            raise MissingError(
                "PyGithub is not installed; next: `pip install 'ci-perf[report]'`"
            ) from None
        self.owner, _, self.name = access.repository.partition("/")
        self._access, self._timeout_s = access, timeout_s
        self._requester = Github(
            auth=Auth.Token(access.token),
            base_url=access.api_url.rstrip("/"),
            timeout=timeout_s,
            user_agent=_USER_AGENT,
            per_page=_PER_PAGE,
            retry=_make_retry(),
            seconds_between_requests=0,
            lazy=True,
        ).requester

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

    def make(self, path: str, body: dict[str, Any], *, what: str) -> Resource:
        """Make something. It is not made twice, so a lost answer is an error."""
        return self._ask("POST", path, Resource, what=what, body=body)

    def start(
        self, path: str, body: dict[str, Any] | None, kind: type[T], *, what: str
    ) -> T | None:
        """Start something, once; `None` where GitHub does not describe it."""
        answer: type[T] = kind | None  # type: ignore[assignment]  # known at run time only
        return self._ask("POST", path, answer, what=what, body=body)

    def change(self, path: str, body: dict[str, Any], *, what: str) -> Resource:
        """Change something to what it shall be; that may be done twice."""
        return self._ask("PATCH", path, Resource, what=what, body=body)

    def remove(self, path: str, *, what: str) -> None:
        """Remove something; it may be gone already."""
        try:
            self._ask("DELETE", path, msgspec.Raw, what=what)
        except GithubError as error:
            if error.status != 404:
                raise

    def query(self, document: str, kind: type[T], *, what: str, **variables: object) -> T:
        """Send a GraphQL query, or a mutation, which is sent once: an answer may be lost."""
        asked: dict[str, Any] = {"query": document, "variables": dict(variables)}
        try:
            data = self._post_query(asked, what)
        except GithubError as error:
            if not error.is_unanswered or "mutation" in document:
                raise
            data = self._post_query(asked, what)
        answer = _convert(data, _GraphqlAnswer, what)
        if answer.errors:
            said = _message({"message": answer.errors[0].get("message")})
            raise GithubError(f"{what}: GitHub refused the query ({said})")
        return _convert(answer.data, kind, what)

    def _post_query(self, asked: dict[str, Any], what: str) -> object:
        url = self._requester.graphql_url
        with _convert_errors(what):
            return self._requester.requestJsonAndCheck("POST", url, input=asked)[1]

    def download(self, path: str, *, what: str, max_bytes: int) -> bytes:
        """Fetch a file that GitHub keeps on another host. Raises InvalidFileError: too large."""
        import requests
        from requests.adapters import HTTPAdapter

        url = f"{self._access.api_url.rstrip('/')}/repos/{self.owner}/{self.name}{path}"
        with _convert_errors(what), requests.Session() as session:
            session.mount("https://", HTTPAdapter(max_retries=_make_retry()))
            session.mount("http://", HTTPAdapter(max_retries=_make_retry()))
            session.headers["User-Agent"] = _USER_AGENT
            # Given so, a .netrc of the runner's user cannot put another token in its place.
            auth = _sign_with(self._access.token)
            asked = session.get(url, auth=auth, allow_redirects=False, timeout=self._timeout_s)
            place = _redirect_target(asked, url)
            with session.get(
                place, auth=lambda request: request, timeout=self._timeout_s, stream=True
            ) as response:
                if response.status_code != requests.codes.ok:
                    raise _refusal(response)
                return _read(response, max_bytes)

    def _ask(
        self,
        verb: str,
        path: str,
        kind: type[T],
        *,
        what: str,
        parameters: dict[str, Any] | None = None,
        body: dict[str, Any] | None = None,
    ) -> T:
        url = f"/repos/{self.owner}/{self.name}{path}"
        with _convert_errors(what):
            _, data = self._requester.requestJsonAndCheck(verb, url, parameters, input=body)
        return _convert(data, kind, what)


def _convert(data: object, kind: type[T], what: str) -> T:
    """Check the answer's shape: it may come from a proxy, or from a redirection."""
    if kind is msgspec.Raw:
        return kind()
    try:
        return msgspec.convert(data, kind)
    except msgspec.ValidationError:
        raise GithubError(
            f"{what}: expected an answer of GitHub's API, found another document; is there a "
            "proxy, and does GITHUB_API_URL name the API?"
        ) from None


def _make_retry() -> "GithubRetry":
    """Make a policy that repeats what may be done twice, and a POST only where it did nothing.

    GitHub has done nothing where it refuses a request for its rate.
    """
    from github.GithubRetry import GithubRetry
    from urllib3.exceptions import MaxRetryError

    class Retry(GithubRetry):
        def is_retry(
            self,
            method: str,
            status_code: int,
            has_retry_after: bool = False,  # noqa: FBT001, FBT002  urllib3's
        ) -> bool:
            if method == "POST":
                return bool(self.total) and status_code in {403, 429}
            return super().is_retry(method, status_code, has_retry_after)

        def increment(
            self,
            method: str | None = None,
            url: str | None = None,
            response: Any = None,  # noqa: ANN401  urllib3's
            *more: Any,  # noqa: ANN401
            **named: Any,  # noqa: ANN401
        ) -> "UrllibRetry":
            wait_s = self.get_retry_after(response) if response else None
            if wait_s is not None and wait_s > _LONGEST_WAIT_S:
                raise MaxRetryError(named["_pool"], url or "")
            return super().increment(method, url, response, *more, **named)

    return Retry(
        total=3,
        backoff_factor=1,
        status_forcelist=[429, *range(500, 600)],
        allowed_methods={"GET", "PATCH", "DELETE"},
        raise_on_status=False,
        secondary_rate_wait=_LONGEST_WAIT_S,
        max_rate_limit_wait=_LONGEST_WAIT_S,
    )


def _redirect_target(asked: "Response", url: str) -> str:
    """Return the address that GitHub names; never from an encrypted connection to an open one."""
    place = asked.headers.get("Location", "")
    if asked.status_code not in {302, 307}:
        raise _refusal(asked)
    if urlsplit(place).scheme not in {"https", urlsplit(url).scheme}:
        raise AssertionError("an address that is no page of the web")  # as PyGithub says it
    return place


def _read(response: "Response", max_bytes: int) -> bytes:
    data = bytearray()
    for chunk in response.iter_content(_CHUNK_BYTES):
        data += chunk
        if len(data) > max_bytes:
            raise InvalidFileError(f"expected at most {max_bytes // 2**20} MiB, found more")
    return bytes(data)


def _refusal(response: "Response") -> Exception:
    """Return a refusal as PyGithub's exception, so that both are told alike."""
    from github import GithubException

    try:
        said = response.json()
    except ValueError:
        said = None
    return GithubException(response.status_code, said, dict(response.headers))


def _sign_with(token: str) -> "Callable[[PreparedRequest], PreparedRequest]":
    def sign(request: "PreparedRequest") -> "PreparedRequest":
        request.headers["Authorization"] = f"Bearer {token}"
        return request

    return sign


@contextlib.contextmanager
def _convert_errors(what: str) -> Iterator[None]:
    """Convert failures of PyGithub and requests; any other one is a bug of ours."""
    try:
        yield
    except CiPerfError:
        raise
    except Exception as error:
        failure = convert_failure(error, what)
        if failure is None:
            raise
        raise failure from None


def convert_failure(error: Exception, what: str) -> GithubError | None:
    """Say what failed and what to do, and never the token; `None` for what is no failure of GitHub.

    The text of an error of requests may hold the address of a proxy, with its password.
    """
    import requests
    from github import GithubException

    if isinstance(error, GithubException):
        return _convert_answer(error, what)
    answer = ""
    if isinstance(error, requests.RequestException | ConnectionError | TimeoutError):
        answer = f"no answer ({type(error).__name__})"
    elif isinstance(error, json.JSONDecodeError):
        answer = "an answer that was cut off"
    if answer:
        return _build_unanswered_error(what, answer)
    # PyGithub asserts that an address is of the configured host, or says that it is not.
    if isinstance(error, AssertionError) or str(error).startswith("Github server redirected"):
        return GithubError(f"{what}: GitHub led to another host")
    return None


def _convert_answer(error: Any, what: str) -> GithubError:  # noqa: ANN401  GithubException
    status, message = error.status or 0, _message(error.data)
    headers = {name.lower(): value for name, value in (error.headers or {}).items()}
    detail = f" ({message})" if message else ""
    said = f"{what}: GitHub answered {status}{detail}"
    is_empty = "retry-after" in headers or headers.get("x-ratelimit-remaining") == "0"
    if status == 429 or (status == 403 and (is_empty or _LIMITED.search(message))):
        return GithubError(f"{said}: too many requests; later jobs will report again", status=429)
    if status < 400 or status >= 500:
        return _build_unanswered_error(what, f"{status}{detail}", status)
    return GithubError(said + _CURES.get(status, ""), status=status)


def _build_unanswered_error(what: str, answer: str, status: int = 0) -> GithubError:
    return GithubError(
        f"{what}: expected an answer of GitHub, found {answer}; is GitHub available and reachable?",
        status=status,
        is_unanswered=True,
    )


def _message(data: object) -> str:
    """Return what GitHub says, short and on one line; a page of HTML says nothing."""
    if not isinstance(data, dict) or not isinstance(message := data.get("message"), str):
        return ""
    errors = data.get("errors")
    first = errors[0] if isinstance(errors, list) and errors else None
    detail = first.get("message") if isinstance(first, dict) else None
    text = message if not isinstance(detail, str) else f"{message}: {detail}"
    line = " ".join(_UNSEEN.sub(" ", text).split())
    return line if len(line) <= _MAX_CHARS else line[: _MAX_CHARS - 1] + "…"
