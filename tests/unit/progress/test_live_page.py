"""The page that follows a check: who is answered, what it shows, and that it is served once."""

import contextlib
import http.client
import inspect
import socket
import threading
import time

import pytest

from ci_perf.errors import UsageError
from ci_perf.model.comparison import Verdict
from ci_perf.progress import live_page
from ci_perf.session import Forecast, Listener, several
from tests.clocks import Clock
from tests.comparisons import a_change
from tests.sessions import Recorder


@pytest.fixture
def page():
    page = live_page.LivePage(Clock())
    page.began()
    page.planned({"mlp": 2, "conv": 2})
    return page


def asked(app, path="/token/", *, method="GET", host="127.0.0.1:8000"):
    """Return the status and the body of an answer."""
    said = []
    environ = {"PATH_INFO": path, "REQUEST_METHOD": method, "HTTP_HOST": host}
    (body,) = app(environ, lambda status, headers: said.extend((status[:3], dict(headers))))
    assert said[1]["Cache-Control"] == "no-store"
    assert said[1]["Content-Length"] == str(len(body))
    return said[0], body.decode()


@pytest.mark.parametrize(
    ("how", "status"),
    [
        ({}, "200"),
        ({"host": "localhost:9000"}, "200"),
        ({"host": "evil.example"}, "421"),
        ({"host": "127.0.0.1.evil.example:8000"}, "421"),
        ({"host": ""}, "421"),
        ({"path": "/"}, "404"),
        ({"path": "/Token/"}, "404"),
        ({"path": "/token"}, "404"),
        ({"path": "/token/../token/"}, "404"),
        ({"path": "/t\xc3\xb6ken/\u20ac"}, "404"),
        ({"method": "POST"}, "405"),
        ({"method": "HEAD"}, "405"),
        ({"path": "/other/", "method": "POST"}, "404"),
    ],
)
def test_only_who_reads_the_one_address_is_answered(how, status):
    app = live_page.application("token", lambda _query: "the page", lambda _text: None)

    assert asked(app, **how) == (status, "the page" if status == "200" else "")


def test_shows_what_runs_how_much_is_done_and_what_was_told(page):
    page.started("mlp", 1, 2)
    page.finished("mlp", 1.0)
    page.started("conv", 1, 2)
    page.interleaving(["mlp"], 300.0, Forecast(pairs=9, answerable=1, suspects=1, enough_s=60.0))
    page.pair_started("mlp", 3, 1)

    text = page.html("")

    assert "mlp pair 3, 1 metric undecided" in text
    assert "of the budget of 5 min 0 s" in text
    assert "at most 5 min 0 s left" in text
    assert "the budget allows about 9 pairs" in text
    assert ('http-equiv="refresh"' in text, 'http-equiv="refresh"' in page.html("still")) == (1, 0)


def test_rows_appear_when_no_pair_can_change_them_any_more(page):
    rows = [a_change("mlp", Verdict.REGRESSED, ratio=1.2), a_change("conv", ratio=1.1)]
    page.judged(lambda: rows, ["conv"])
    first = page.html("")
    page.judged(lambda: rows, [])

    assert "▲ regressed" in first
    assert "● unchanged" not in first
    assert "<p><code>conv</code></p>" in first
    assert "● unchanged" in page.html("")


def test_what_a_workload_says_is_text(page):
    page.base_failed("mlp", "</pre><script>alert(1)</script>\x1b[31m")
    page.started("<script>", 1, 2)

    assert "<script" not in page.html("")


def test_the_last_page_waits_for_nobody_unless_somebody_has_looked_lately():
    page = live_page.LivePage(Clock())

    page.finish("the end")

    assert page.html("") == "the end"


def test_a_real_client_is_answered_until_the_end_and_the_port_is_free_then():
    told = []
    with live_page.served(0, told.append) as page:
        page.finish("the end")
        port, path = told[0].split("127.0.0.1:")[1].split(" ")[0].split("/", 1)
        with socket.create_connection(("127.0.0.1", int(port))):  # says nothing, for ever
            client = http.client.HTTPConnection("127.0.0.1", int(port), timeout=30)
            client.request("GET", f"/{path}")
            assert client.getresponse().read() == b"the end"
        with (
            pytest.raises(UsageError, match=f"--serve-port {port}: cannot listen on 127.0.0.1"),
            live_page.served(int(port), told.append),
        ):
            pass

    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", int(port)))


def test_a_connection_that_drips_does_not_keep_a_check_from_ending():
    told = []
    has_ended, gave_up = threading.Event(), threading.Event()

    def drip():
        for _ in range(300):
            with contextlib.suppress(OSError):
                connection.sendall(b"G")
            if has_ended.wait(0.1):
                return
        gave_up.set()

    with live_page.served(0, told.append):
        port = int(told[0].split(":")[3].partition("/")[0])
        connection = socket.create_connection(("127.0.0.1", port))
        dripping = threading.Thread(target=drip)
        dripping.start()
        while not any("process_request" in thread.name for thread in threading.enumerate()):
            time.sleep(0.01)
    has_ended.set()
    dripping.join()
    connection.close()

    assert not gave_up.is_set()


def test_several_listeners_hear_the_same():
    first, second = Recorder(), Recorder()

    together = several(first, second)

    together.started("mlp", 1, 2)
    assert first.heard == second.heard == [("started", "mlp", 1, 2)]
    for name, _ in inspect.getmembers(Listener, inspect.isfunction):
        assert getattr(together, name) is not getattr(Listener, name)
