"""A process that has imported what several launches need, and forks a worker for each of them.

Run as `python -P -m ci_perf.measuring.fork_server FOLDER PARENT` with a socket as standard input.
The parent's side is launch/fork_servers.py, where the messages are described. A launch still has a
process of its own: what it changes, and how it ends, no other launch sees.
"""

import contextlib
import importlib
import os
import select
import socket
import sys
from pathlib import Path

from ci_perf.measuring import knobs, own_code, user_code, worker
from ci_perf.measuring.own_code import ForeignCodeError
from ci_perf.model import task
from ci_perf.system import files, linux

_LINE = 0  # standard input
_MESSAGE_BYTES = 4096


def main(folder: Path) -> None:
    """Do what the launches of the task in `folder` share, then fork until the parent is gone.

    Of tests that is to collect them, of other workloads to import libraries. A thread would be
    missing in what is forked: with several, it says so and ends.
    """
    workload = (todo := files.read(folder / task.TASK, task.Task)).workload
    file, root = Path(workload.file), Path(todo.root)
    with knobs.pause_collector():
        if todo.libraries:
            knobs.fix_process(workload.protocol)
            user_code.add_paths(file, root, todo.python_path)
            user_code.import_ahead(todo.libraries)
            if "numpy" in sys.modules:
                importlib.import_module("numpy.random")  # each launch seeds it
        else:
            loaded = user_code.load(file, root, todo.python_path)
            loaded.prepare(workload.collects)
            with contextlib.suppress(ForeignCodeError):  # each launch says so
                own_code.check(todo)
    with socket.socket(fileno=os.dup(_LINE)) as line:
        if len([*Path("/proc/self/task").iterdir()]) > 1:
            line.send(task.HAS_THREADS)
            return
        os.close(os.pidfd_open(os.getpid()))  # else it is not ready: an old kernel
        _serve(line)


def _serve(line: socket.socket) -> None:
    line.send(task.READY_TO_FORK)
    running: dict[int, tuple[int, int]] = {}
    while True:
        ready, _, _ = select.select([line.fileno(), *running], [], [])
        for handle in ready:
            if handle in running:
                pid, status = running.pop(handle)
                code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
                os.write(status, b"%d\n" % code)
                os.close(handle)
                os.close(status)
                continue
            message, handles, _, _ = socket.recv_fds(line, _MESSAGE_BYTES, 2)
            if not message:
                return
            output, status = handles
            server = os.getpid()
            if not (pid := os.fork()):
                linux.end_with_parent(server)
                os.setsid()
                os.write(status, b"%d\n" % os.getpid())
                # Only the server keeps them open: else its own end would go unheard for as long as
                # a fork of a worker lives.
                for kept in (status, *running, *(each for _, each in running.values())):
                    os.close(kept)
                line.close()
                _become_worker(message.decode(), output)
            os.close(output)
            running[os.pidfd_open(pid)] = pid, status


def _become_worker(message: str, output: int) -> None:
    """Go on as a worker that was started with this folder, these variables and this output."""
    folder, *variables = message.split("\n")
    for each in variables:
        name, _, value = each.partition("=")
        os.environ[name] = value
    os.dup2(os.open(os.devnull, os.O_RDONLY), _LINE)
    os.dup2(output, 1)
    os.dup2(output, 2)
    # What multiprocessing spawns begins like this one.
    sys.argv[1:] = [folder, str(os.getppid())]
    sys.modules["__main__"].__spec__ = worker.__spec__
    knobs.end_process(worker.main(Path(folder), is_forked=True))


if __name__ == "__main__":
    linux.end_with_parent(int(sys.argv[2]))
    main(Path(sys.argv[1]))
