"""What runs on a node: the command of one attempt, and a receipt once it has ended.

    python -m ci_perf.fleet.node JOBFILE [INDEX [PARENT]]

INDEX is that of the attempt in the job; Slurm and Kubernetes say it in a variable. With PARENT this
process ends with it. SIGTERM ends the command, which gets some seconds to tidy up, and leaves no
receipt: the attempt did not come to an end of its own.
"""

import math
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from ci_perf.errors import CiPerfError
from ci_perf.model.fleet import JobFile, Order, Receipt
from ci_perf.system import child, files, linux, signals
from ci_perf.system.child import Cookie
from ci_perf.system.signals import Interrupts

MODULE = "ci_perf.fleet.node"
# In the folder of an attempt: what the node is told, and what it leaves.
ORDER, RECEIPT, RUN = "order.json", "receipt.json", "run.json"
# Every process of an attempt inherits its nonce in this variable.
COOKIE = "CI_PERF_FLEET_ATTEMPT"
# How the engines say which attempt of a job a node has.
INDICES = ("SLURM_ARRAY_TASK_ID", "JOB_COMPLETION_INDEX")
# What a unit is given of the node's environment: what a shell, CUDA and Python need to work. A list
# of what is allowed, so that no credential slips through under a name that nobody thought of.
KEPT = frozenset(
    {
        *("HOME", "LANG", "LANGUAGE", "LOGNAME", "PATH", "PWD", "SHELL", "TEMP", "TERM", "TMP"),
        *("TMPDIR", "TZ", "USER", "LD_LIBRARY_PATH", "PYTHONPATH", "VIRTUAL_ENV", "CONDA_PREFIX"),
        *("CUDA_DEVICE_ORDER", "CUDA_HOME", "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"),
        *("HF_HOME", "XDG_CACHE_HOME", "CI_PERF_DATA_DIR", "CI_PERF_LOCK_DIR", "CI_PERF_NODE"),
    }
)
_KEPT_PREFIX = "LC_"
# `ci-perf run` writes what it has, and removes containers and checkouts.
TIDY_UP_S = 5.0
_INTERRUPTED = 143


def environment_of(ours: Mapping[str, str], named: Sequence[str]) -> dict[str, str]:
    """Return what a unit is given of an environment: `KEPT`, and what the owner has named."""
    return {
        name: value
        for name, value in ours.items()
        if name in KEPT or name in named or name.startswith(_KEPT_PREFIX)
    }


class _Ending:
    """Ends a command after a signal: first it is asked, then it is killed."""

    def __init__(self, interrupts: Interrupts) -> None:
        self._interrupts = interrupts
        self._child: subprocess.Popen[bytes] | None = None
        self._asked_at: float | None = None

    def started(self, child: "subprocess.Popen[bytes]") -> None:
        """Hear of the command's process."""
        self._child = child

    def clock(self) -> float:
        """Return seconds."""
        return time.monotonic()

    def is_over(self) -> bool:
        """Whether the command has had its time to tidy up."""
        if not self._interrupts.have_come() or self._child is None:
            return False
        if self._asked_at is None:
            self._asked_at = self.clock()
            self._child.send_signal(signal.SIGTERM)
        return self.clock() - self._asked_at > TIDY_UP_S


def run(folder: Path) -> int:
    """Run the command of an attempt and write its receipt. Raises CiPerfError."""
    order = files.read(folder / ORDER, Order)
    start = time.monotonic()
    with signals.noted() as interrupts, child.ending_orphans():
        ending = _Ending(interrupts)
        try:
            ended = child.run(
                # A death signal for the command: a killed agent leaves nothing.
                [sys.executable, "-P", "-m", MODULE, "--exec", str(os.getpid()), *order.command],
                cwd=order.cwd,
                environment=environment_of(os.environ, order.environment),
                cookie=Cookie(variable=COOKIE, value=order.nonce),
                timeout_s=math.inf,
                interrupted=ending.is_over,
                slot=ending,
            )
        except KeyboardInterrupt:
            return _INTERRUPTED
        except OSError as error:
            raise CiPerfError(f"{order.cwd}: cannot be entered: {error.strerror}") from None
        if interrupts.have_come():
            return _INTERRUPTED
    receipt = Receipt(
        unit=order.unit,
        nonce=order.nonce,
        node=os.environ.get("SLURMD_NODENAME") or socket.gethostname(),
        exit_code=ended.code,
        duration_s=time.monotonic() - start,
        output=ended.tail[-4000:],
    )
    files.write(folder / RECEIPT, receipt)
    return 0


def main(arguments: Sequence[str]) -> int:
    """Run one attempt; every failure goes to stderr, which the engine keeps."""
    if arguments[0] == "--exec":
        linux.end_with_parent(int(arguments[1]))
        _execute(arguments[2:])
    if len(arguments) > 2:
        linux.end_with_parent(int(arguments[2]))
    try:
        job = files.read(Path(arguments[0]), JobFile)
        said = arguments[1] if len(arguments) > 1 else _index(os.environ)
        return run(Path(job.folders[int(said)]))
    except (CiPerfError, IndexError, ValueError) as error:
        sys.exit(f"{arguments[0]}: {error}")


def _execute(command: Sequence[str]) -> None:
    """Become the command; exit as a shell does where there is none."""
    try:
        os.execvp(command[0], [*command])  # noqa: S606  the order's command, without a shell
    except OSError as error:
        os.write(2, f"{command[0]}: cannot be started: {error.strerror}\n".encode())
        os._exit(127)


def _index(environment: Mapping[str, str]) -> str:
    """Return which attempt of its job this is. Raises ValueError: no engine says it."""
    for name in INDICES:
        if name in environment:
            return environment[name]
    raise ValueError(f"expected one of {', '.join(INDICES)} in the environment, found none")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
