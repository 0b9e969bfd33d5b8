"""A file that GitHub keeps on another host: first where it is, with the token; then it, without.

The other host refuses a request that shows a token, and must not see ours.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ci_perf.errors import InvalidFileError
from ci_perf.version import __version__

if TYPE_CHECKING:
    from requests import PreparedRequest, Response

_FOUND = {302, 307}
_CHUNK_BYTES = 2**16
_SIGN = {"User-Agent": f"ci-perf/{__version__}"}


def fetch(url: str, token: str, timeout_s: int, *, max_bytes: int) -> bytes:
    """Return the file. Raises what requests and PyGithub raise, and InvalidFileError: too large."""
    import requests

    headers = {**_SIGN, "Accept": "application/vnd.github+json"}
    # Given so, a .netrc of the runner's user cannot put another token in its place.
    with requests.get(
        url, headers=headers, auth=_bearer(token), allow_redirects=False, timeout=timeout_s
    ) as asked:
        place = _place(asked, url)
    with requests.get(
        place, headers=_SIGN, auth=_as_nobody, timeout=timeout_s, stream=True
    ) as found:
        if found.status_code != requests.codes.ok:
            raise _refusal(found)
        return _whole(found, max_bytes)


def _place(asked: "Response", url: str) -> str:
    """Return where GitHub leads; never from an encrypted connection to an open one."""
    place = asked.headers.get("Location", "")
    if asked.status_code not in _FOUND:
        raise _refusal(asked)
    if urlsplit(place).scheme not in {"https", urlsplit(url).scheme}:
        raise AssertionError("an address that is no page of the web")  # told as another host
    return place


def _whole(found: "Response", max_bytes: int) -> bytes:
    data = bytearray()
    for chunk in found.iter_content(_CHUNK_BYTES):
        data += chunk
        if len(data) > max_bytes:
            raise InvalidFileError(f"expected at most {max_bytes // 2**20} MiB, found more")
    return bytes(data)


def _refusal(response: "Response") -> Exception:
    """Tell a refusal as PyGithub does, so that all are told in one way."""
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
