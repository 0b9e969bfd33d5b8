"""Commands of a suite that put load on a server: a real one of asyncio, and a client of its own."""

import http.server
import json
import random
import re
import signal
import sys
import threading
import time

import pytest

from ci_perf.errors import ExitCode
from ci_perf.measuring.server import Server, find_free_port
from ci_perf.model.run import Run
from ci_perf.system import files
from tests import repositories
from tests.processes import find_running_in, wait_until
from tests.projects import Project

SERVER = """
import asyncio, os, signal, subprocess, sys
import pace

held = b"x" * (40 << 20)

async def answer(reader, writer):
    head = await reader.readuntil(b"\\r\\n\\r\\n")
    if b"/die" in head:
        print("the server gives up", flush=True)
        os._exit(7)
    if b"/load" in head:
        await asyncio.sleep(pace.S)
    writer.write(b"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nok")
    await writer.drain()
    writer.close()

async def main():
    if "--deaf" in sys.argv:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if "--child" in sys.argv:
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", os.getcwd()],
                         start_new_session=True)
    server = await asyncio.start_server(answer, "localhost", int(sys.argv[1]))
    await server.serve_forever()

asyncio.run(main())
"""
CLIENT = """
import json, sys, time, urllib.request
port, path, file = sys.argv[1:4]
times = []
for _ in range(10):
    start = time.perf_counter()
    urllib.request.urlopen(f"http://localhost:{port}/{path}").read()
    times.append(1000 * (time.perf_counter() - start))
if file != "-":
    json.dump({"median_ttft_ms": sorted(times)[5], "failed": 0}, open(file, "w"))
print("failed requests: 0")
"""
CHILD = """
import signal, sys, time

def end(*_):
    time.sleep(1)
    open("ended", "w").close()
    sys.exit()

signal.signal(signal.SIGTERM, end)
print("up", flush=True)
time.sleep(600)
"""
START_CHILD = """child = subprocess.Popen([sys.executable, "child.py"], stdout=subprocess.PIPE)
    child.stdout.readline()
    server = await"""
SUITE = """
schema_version = 1
[suites.serve]
device = "cpu"
canaries = false
[[suites.serve.commands]]
name = "client"
server = "{python} server.py {{port}} {options}"
ready = "http://localhost:{{port}}/{health}"
ready_s = {ready_s}
command = "{python} client.py {{port}} {path} {{output}}"
{reads}
require = "{require}"
protocol = {{ processes = 1, timed_min_s = 0.0, timed_max_s = 0.1, memory_steps = 1 }}
"""


@pytest.fixture
def repository(tmp_path):
    git = repositories.init(tmp_path / "project")
    (git.root / "workloads").mkdir()
    git.commit(server_py=SERVER, client_py=CLIENT, pace_py="S = 0.01\n")
    return git


def write_suite(git, **changes):
    said = {
        "python": sys.executable,
        "options": "",
        "health": "",
        "ready_s": 30,
        "path": "load",
        "require": "failed requests: 0",
        "reads": """metric = 'ttft_ms="median_ttft_ms": ([0-9.]+)'""",
    }
    (git.root / "workloads/suite.toml").write_text(SUITE.format(**{**said, **changes}))
    git.ask("add", "--all")
    git.commit()


def run(git, **changes):
    """Run the suite once; return how it ended, and its run."""
    write_suite(git, **changes)
    done = Project(git.root).run("run", "--suite", "serve", "--wait", "0s")
    return done, files.read(git.root / "run.json", Run)


def find_left(git):
    """Return the processes that still run in the repository, but for the guardian, which ends."""
    return [each for each in find_running_in(git.root) if "ci_perf.system.guardian" not in each]


def test_what_the_client_writes_is_the_step_time(repository):
    done, measured = run(repository)

    assert done.code == ExitCode.OK, done.err
    (workload,) = measured.measured
    assert workload.processes[0].timed.block_s[0] >= 0.01
    memory = workload.processes[0].memory
    # The server holds 40 MiB: its memory counts beside that of the client, which has no such peak.
    assert memory.host_rss_peak_bytes < 40 * 2**20 < memory.host_rss_peak_bytes + memory.below_bytes
    assert find_left(repository) == []


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"path": "die"},
            ("found that it ended with exit code 7", "the server gives up"),
        ),
        ({"options": "--no-such", "health": "die"}, ("found that it ended with exit code 7",)),
        (
            {"require": "failed requests: 1"},
            ("expected a line with 'failed requests: 1', found none",),
        ),
    ],
)
def test_a_server_or_a_client_that_fails_says_why(repository, changes, said):
    done, measured = run(repository, **changes)

    assert done.code == ExitCode.NO_ANSWER, done.err
    assert measured.measured == ()
    assert all(words in done.err for words in said)
    assert find_left(repository) == []


def test_a_server_that_is_never_ready_is_told_with_the_time_limit(repository):
    slow = SERVER.replace("server = await", "await asyncio.sleep(60)\n    server = await")
    repository.commit(server_py=slow)

    done, _ = run(repository, ready_s=1)

    assert done.code == ExitCode.NO_ANSWER
    assert re.search(
        r"expected an answer of http://localhost:\d+/ within 1 s, found .*refused", done.err
    )
    assert find_left(repository) == []


OWN = """
reads = "json"
metrics.median_ttft_ms = {{ kind = "time", limit = 0.05 }}
metrics.failed = {{ kind = "validity", at_most = {} }}
"""


def test_a_first_token_that_is_20_percent_later_is_found(repository):
    repository.commit(pace_py="S = 0.050\n")
    write_suite(repository, reads=OWN.format(0))
    repository.ask("switch", "--quiet", "--create", "branch")
    repository.commit(pace_py="S = 0.060\n")

    done = Project(repository.root).run(
        *("check", "--suite", "serve", "--against", "main", "--wait", "0s"),
        *("--comparison", "../comparison.json"),
    )

    rows = json.loads((repository.root.parent / "comparison.json").read_text())["rows"]
    found = {row.get("metric"): row for row in rows}
    row, step = found["time.median_ttft_ms"], found["step_time_s"]
    assert find_left(repository) == []
    assert (done.code, row["limit"]) == (ExitCode.REGRESSED, 0.05), done.err
    assert (row["verdict"], step["verdict"]) == ("regressed", "regressed")
    assert row["ratio"] == pytest.approx(1.2, abs=0.05)
    assert "median_ttft_ms" in done.out.splitlines()[0]


def test_a_load_outside_of_its_bounds_is_no_measurement(repository):
    done, measured = run(repository, reads=OWN.format(-1))

    assert done.code == ExitCode.NO_ANSWER
    assert measured.measured == ()
    assert "failed: expected at most -1, found 0" in done.err


@pytest.mark.story
def test_nothing_is_left_of_a_server_that_ignores_signals_and_leaves_children(repository):
    done, _ = run(repository, options="--deaf --child")

    assert done.code == ExitCode.OK, done.err
    assert find_left(repository) == []


@pytest.mark.parametrize(
    ("options", "sent"),
    [("--deaf --child", "SIGTERM"), ("--deaf", "SIGKILL")],
)
def test_nothing_is_left_when_a_run_is_killed_while_it_serves(repository, options, sent):
    write_suite(repository, options=options)
    process = Project(repository.root).start("run", "--suite", "serve", "--wait", "0s")
    wait_until(lambda: any("server.py" in command for command in find_left(repository)))
    time.sleep(random.uniform(0, 2))

    process.send_signal(signal.Signals[sent])
    process.communicate(timeout=60)

    wait_until(lambda: find_left(repository) == [])


def test_a_child_of_the_server_has_time_to_end_in_order(repository):
    """The engine processes of vLLM write their caches when the server has ended."""
    repository.commit(child_py=CHILD, server_py=SERVER.replace("server = await", START_CHILD))

    done, _ = run(repository)

    assert done.code == ExitCode.OK, done.err
    assert (repository.root / "ended").exists()


class Foreign(http.server.BaseHTTPRequestHandler):
    """Has whatever it is asked for, but no first page."""

    def do_GET(self):
        self.send_response(404 if self.path == "/" else 200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture
def foreign():
    """A server of somebody else, which answers on a port."""
    with http.server.ThreadingHTTPServer(("localhost", 0), Foreign) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def serve(tmp_path):
    """Return a server on a port, which writes a file once it is started."""

    def serve(port):
        file = tmp_path / "started"
        code = f"import pathlib; pathlib.Path({str(file)!r}).touch(); import http.server as s; "
        code += f"s.test(s.SimpleHTTPRequestHandler, s.ThreadingHTTPServer, port={port})"
        return Server(f'{sys.executable} -c "{code}"', f"http://localhost:{port}/", 60, log), file

    with (tmp_path / "log").open("w+") as log:
        yield serve


def test_another_server_on_the_port_of_a_server_is_an_error(repository, foreign):
    """The client would measure that one on both sides, and find no difference."""
    port = foreign.server_address[1]
    goes_on = "try: asyncio.run(main())\nexcept OSError: __import__('time').sleep(600)"
    repository.commit(server_py=SERVER.replace("asyncio.run(main())", goes_on))
    write_suite(repository, health="health", reads="")
    file = repository.root / "workloads/suite.toml"
    text = file.read_text().replace("{port}", str(port)).replace("{output}", "-")
    file.write_text(text)

    done = Project(repository.root).run("run", "--suite", "serve", "--wait", "0s")

    assert done.code == ExitCode.NO_ANSWER, done.err
    assert f"expected no answer of http://localhost:{port}/health before its start" in done.err
    assert "another server answers there" in done.err
    assert find_left(repository) == []


def test_a_server_waits_for_an_earlier_one_that_is_ending(foreign, serve):
    """The kernel ends it with the thread that has started it: here that of the test."""
    server, started = serve(foreign.server_address[1])
    seen = []

    def end():
        time.sleep(0.5)
        seen.append(started.exists())
        foreign.shutdown()
        foreign.server_close()

    thread = threading.Thread(target=end)
    thread.start()
    server.start()
    thread.join(timeout=60)

    assert seen == [False]
    assert started.exists()
    server.check()
    server.stop()


def test_a_port_can_serve_again_at_once(serve):
    """The kernel remembers the connections of an earlier server (TIME_WAIT)."""
    port = find_free_port()
    for _ in range(3):
        server, _ = serve(port)
        server.start()
        server.stop()


def test_a_proxy_does_not_answer_for_a_server(serve, foreign, monkeypatch):
    monkeypatch.setenv("http_proxy", f"http://localhost:{foreign.server_address[1]}")
    server, _ = serve(find_free_port())

    server.start()
    server.stop()
