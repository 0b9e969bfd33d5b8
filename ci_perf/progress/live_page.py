"""`check --serve`: a page on loopback that follows the check, for who knows its address.

A thread of this process answers, with text that is there already: it reads no file, starts nothing
and changes nothing. Rows are drawn while no workload runs.
"""

import contextlib
import hmac
import secrets
import socketserver
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer
from wsgiref.types import StartResponse, WSGIEnvironment

from ci_perf.errors import UsageError
from ci_perf.model.comparison import Row
from ci_perf.progress.bar import Meter, TerminalListener
from ci_perf.report.page import REFRESH_S, Progress, live_rows, render_live

LOOPBACK = "127.0.0.1"
# A page of another name whose address leads here (DNS rebinding) is not ours.
_HOSTS = frozenset({LOOPBACK, "localhost"})
_HEADERS = [
    ("Content-Type", "text/html; charset=utf-8"),
    ("Cache-Control", "no-store"),
    ("Content-Security-Policy", "frame-ancestors 'none'"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Referrer-Policy", "no-referrer"),
    ("X-Content-Type-Options", "nosniff"),
]


class _Bar:
    """What TerminalListener draws on: remembers what it would show."""

    def __init__(self) -> None:
        self.now = "starting"
        self.notes: list[str] = []
        self.console = self

    def add_task(self, now: str, *, total: int) -> int:
        self.now = now
        return total

    def start(self) -> None:
        """Show nothing: somebody asks."""

    def stop(self) -> None:
        self.now = "judging"

    def update(self, _task: int, *, description: str, refresh: bool) -> None:
        del refresh
        self.now = description

    def print(self, text: str, *, markup: bool, highlight: bool) -> None:
        del markup, highlight
        self.notes.append(text)


class LivePage(TerminalListener):
    """Hears of a check, and is a page of it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._shown, self._read = _Bar(), Meter(clock)
        super().__init__(self._shown, self._read)
        self._clock = clock
        self._drawn = live_rows(())
        self._undecided: Sequence[str] = ()
        self._final: str | None = None
        self._has_ended = threading.Event()
        self._visited = -float("inf")

    def judged(self, rows: Callable[[], Sequence[Row]], undecided: Collection[str]) -> None:
        """See Listener: draw what is decided."""
        self._undecided = tuple(undecided)
        self._drawn = live_rows([row for row in rows() if row.workload not in undecided])

    def html(self, query: str) -> str:
        """Return the page as it is now; it loads itself anew, unless it is asked to stand still."""
        self._visited = self._clock()
        if self._final is not None:
            return self._final
        progress = Progress(
            now=self._shown.now,
            counted=self._read.counted(),
            left=self._read.left(),
            notes=self._shown.notes,
            undecided=self._undecided,
        )
        return render_live(progress, self._drawn, follows=query != "still")

    def sent(self, text: str) -> None:
        """Note that an answer has been written, as a whole."""
        if text is self._final:
            self._has_ended.set()

    def finish(self, final: str) -> None:
        """Show this page from now on; wait until who has looked lately has it, too."""
        self._final = final
        if self._clock() - self._visited < 2 * REFRESH_S:
            self._has_ended.wait(2 * REFRESH_S)


class _Answer(list[bytes]):
    """The body of an answer, which a WSGI server closes once it is written (PEP 3333)."""

    def __init__(self, text: str, sent: Callable[[str], None]) -> None:
        super().__init__([text.encode()])
        self.close = lambda: sent(text)


def application(
    token: str, html: Callable[[str], str], sent: Callable[[str], None]
) -> Callable[[WSGIEnvironment, StartResponse], Iterable[bytes]]:
    """Answer GET of the one address that has the token; all else is refused.

    `html` takes the query and returns the page, `sent` hears of each text that was written.
    """
    address = f"/{token}/".encode()

    def respond(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        host = environ.get("HTTP_HOST", "").partition(":")[0]
        path = environ.get("PATH_INFO", "").encode("latin-1", "replace")
        if host not in _HOSTS:
            status, body = "421 Misdirected Request", ""
        elif not hmac.compare_digest(path, address):
            status, body = "404 Not Found", ""
        elif environ["REQUEST_METHOD"] != "GET":
            status, body = "405 Method Not Allowed", ""
        else:
            status, body = "200 OK", html(environ.get("QUERY_STRING", ""))
        answer = _Answer(body, sent)
        start_response(status, [*_HEADERS, ("Content-Length", str(len(answer[0])))])
        return answer

    return respond


class _Handler(WSGIRequestHandler):
    """Who sends no request, or reads no answer, is left alone soon."""

    timeout = 2

    def log_message(self, *_: object) -> None:
        """Say nothing: the terminal is the check's."""


class _Server(socketserver.ThreadingMixIn, WSGIServer):
    """One thread for each request: a slow reader keeps nobody waiting, nor the end of the check."""

    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """Say nothing of who went away: the terminal is the check's."""

    def server_bind(self) -> None:
        """Bind without asking a name server what loopback is called."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = LOOPBACK, self.server_address[1]
        self.setup_environ()


@contextlib.contextmanager
def served(port: int, say: Callable[[str], None]) -> Iterator[LivePage]:
    """Serve a page until the end, and say where; port 0 is any free one. Raises UsageError."""
    page = LivePage()
    token = secrets.token_urlsafe(16)
    try:
        server = _Server((LOOPBACK, port), _Handler)
    except OSError as error:
        raise UsageError(
            f"--serve-port {port}: cannot listen on {LOOPBACK}: {error.strerror}; leave the option "
            "out for a free port"
        ) from None
    server.set_app(application(token, page.html, page.sent))
    thread = threading.Thread(target=server.serve_forever, name="live page", daemon=True)
    with server:
        thread.start()
        say(f"follow it: http://{LOOPBACK}:{server.server_port}/{token}/ (until the check ends)")
        try:
            yield page
        finally:
            server.shutdown()
