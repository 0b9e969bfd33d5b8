"""A server that a command puts load on: started once a launch, and ended with its whole group."""

import contextlib
import functools
import http.client
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections import deque
from dataclasses import dataclass, field
from typing import IO

from ci_perf.system import linux

# How long it may take to end by itself, as may the one before it; how often its health is asked.
_END_S = 10.0
_PAUSE_S = 0.1
_ANSWER_S = 5.0
_LAST_LINES = 30
# It runs on this machine: a proxy would answer in its place.
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def find_free_port() -> int:
    """Return a port of this host that nobody listens to now."""
    with socket.socket() as listener:
        listener.bind(("localhost", 0))
        return int(listener.getsockname()[1])


@dataclass
class Server:
    """A command that serves until it is stopped; ``log`` takes what it prints.

    It is ready when ``ready``, a URL, answers, within ``ready_s`` seconds.
    """

    command: str
    ready: str
    ready_s: float
    log: IO[str]
    _process: "subprocess.Popen[bytes] | None" = field(default=None, init=False)

    def start(self) -> None:
        """Start it, and wait until it is ready.

        Raises RuntimeError: it cannot be started, ends, or is not ready in time, or another one
        answers in its place.
        """
        self._refuse_another()
        try:
            self._process = subprocess.Popen(
                shlex.split(self.command),
                stdin=subprocess.DEVNULL,
                stdout=self.log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                # What kills this process may be a signal that nothing hears.
                preexec_fn=functools.partial(linux.end_with_parent, os.getpid()),  # noqa: PLW1509
            )
        except OSError as error:
            first = repr(shlex.split(self.command)[0])
            raise RuntimeError(f"{self.command}: cannot start {first}: {error.strerror}") from None
        try:
            self._wait_until_ready()
        except RuntimeError:
            self.stop()
            raise

    def _refuse_another(self) -> None:
        """Raise RuntimeError if another server answers, which has 10 s to end."""
        end = time.monotonic() + _END_S
        while self.ready:
            try:
                self._ask()
            except OSError:
                return
            if time.monotonic() > end:
                raise RuntimeError(
                    f"{self.command}: expected no answer of {self.ready} before its start, found "
                    "that another server answers there; end that one, or name a free {port}"
                )
            time.sleep(_PAUSE_S)

    def _wait_until_ready(self) -> None:
        end = time.monotonic() + self.ready_s
        while self.ready and (problem := self._find_problem()):
            self.check()
            if time.monotonic() > end:
                self._show_log()
                raise RuntimeError(
                    f"{self.command}: expected an answer of {self.ready} within "
                    f"{self.ready_s:g} s, found {problem}"
                )
            time.sleep(_PAUSE_S)
        self.check()  # another server may have answered, on a port that is taken

    def check(self) -> None:
        """Raise RuntimeError with its exit code if it has ended; its log is shown."""
        if self._process is not None and (code := self._process.poll()) is not None:
            self._show_log()
            raise RuntimeError(
                f"{self.command}: expected a running server, found that it "
                f"ended with exit code {code}"
            )

    def stop(self) -> None:
        """End it and its group: by SIGTERM, and by SIGKILL what has not ended in 10 s.

        What has left the group ends with the launch.
        """
        if self._process is None:
            return
        group = self._process.pid
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, signal.SIGTERM)
            end = time.monotonic() + _END_S
            while time.monotonic() < end:
                self._process.poll()  # fetches its exit code: then it is of the group no more
                os.killpg(group, 0)
                time.sleep(_PAUSE_S)
            os.killpg(group, signal.SIGKILL)
        self._process.wait()

    def _find_problem(self) -> str:
        """Return why the URL does not answer as it should, empty where it does."""
        try:
            status = self._ask()
        except OSError as error:
            return str(getattr(error, "reason", error))
        return "" if status in range(200, 300) else f"status {status}"

    def _ask(self) -> int:
        """Return the status with which the URL answers. Raises OSError: it does not."""
        try:
            with _OPENER.open(self.ready, timeout=_ANSWER_S) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code
        except (http.client.HTTPException, ValueError) as error:
            raise OSError(f"{type(error).__name__}: {error}") from None

    def _show_log(self) -> None:
        self.log.seek(0)
        sys.stdout.writelines(deque(self.log, maxlen=_LAST_LINES))
