"""The way of an answer to its client, where faults strike."""

import os
import re
import socket
import struct
import threading
from dataclasses import dataclass

from werkzeug.serving import WSGIRequestHandler, make_server
from werkzeug.wrappers import Response

from tests.fakes.github import faults

# As long as anybody waits for a body that has stalled; the end of the server is the usual end.
STALLED_S = 30


@dataclass
class Planned:
    """A fault that waits for its request."""

    method: str
    path: str
    fault: faults.Fault
    times: int


class Quiet(WSGIRequestHandler):
    def log(self, *_, **__):
        """A test's output is its own."""

    def connection_dropped(self, *_):
        """Wait for no other request on a connection that has been reset."""
        self.close_connection = True


class Host:
    """One host, from now until it is closed."""

    def __init__(self, address, application):
        self._server = make_server(address, 0, application, threaded=True, request_handler=Quiet)
        # The default of half a second would be the longest part of a test.
        loop = {"poll_interval": 0.01}
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs=loop, daemon=True)
        self._thread.start()
        self.url = f"http://{address}:{self._server.server_port}"

    def close(self):
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class Delivery:
    """Brings the answers of both hosts; `elsewhere` is where a redirect leads."""

    def __init__(self):
        self.elsewhere = ""
        self._planned: list[Planned] = []
        self._closing = threading.Event()
        self._lock = threading.Lock()

    def plan(self, planned):
        self._planned.append(planned)

    def close(self):
        """Let go of those who still wait for a body."""
        self._closing.set()

    def bring(self, request, path, work):
        """Return what `work()` answers, or what a fault leaves of it: None if nothing."""
        fault = self._next_fault(request.method, path)
        if isinstance(fault, faults.Meanwhile):
            fault.happens()
            fault = None
        if fault is None:
            return work()
        response = work() if fault.after else Response()
        return self._faulty(fault, response, request)

    def _next_fault(self, method, path):
        with self._lock:
            for planned in self._planned:
                if planned.times and planned.method == method and re.search(planned.path, path):
                    planned.times -= 1
                    return planned.fault
        return None

    def _faulty(self, fault, response, request):
        if isinstance(fault, faults.Answered):
            return Response(
                fault.body, fault.status, fault.headers, content_type=fault.content_type
            )
        if isinstance(fault, faults.Elsewhere):
            there = self.elsewhere + request.full_path.rstrip("?")
            return Response(b"", 302, {"Location": there})
        return None if fault.how == "reset" else self._broken(fault.how, response)

    def _broken(self, how, response):
        whole = response.get_data()
        half = whole[: len(whole) // 2]
        ways = {
            "stalled": (len(whole), self._stalling(half)),
            "cut_json": (len(half), [half]),
            "cut_body": (len(whole), [half]),
        }
        length, response.response = ways[how]
        response.headers["Content-Length"] = str(length)
        return response

    def _stalling(self, half):
        yield half
        self._closing.wait(STALLED_S)


def finish(response, environment, start):
    """Send what there is to send; without an answer, reset the connection.

    The server may close its end as usual afterwards; what it closes is nothing by then.
    """
    if response is not None:
        return response(environment, start)
    connection = environment["werkzeug.socket"]
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, connection.fileno())
    os.close(nothing)
    raise ConnectionResetError
