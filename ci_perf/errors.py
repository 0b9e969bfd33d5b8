"""Every way ci-perf can end, and every failure a person can act on.

    CiPerfError            every failure that ci_perf raises on purpose
    ├── UsageError         options that do not fit together, or name what does not exist
    ├── InvalidFileError   a run, a baseline or a suite that does not say what it must say
    ├── CannotWriteError   a file that could not be written; what stood there is intact
    ├── RefusedError       a run that must not become a baseline
    ├── BusyError          a device that did not become free in time
    └── EngineError        docker, podman or a scheduler is not there, or refuses

Rooms that talk to GitHub or merge baselines have further subclasses of CiPerfError.
"""

from enum import IntEnum


class ExitCode(IntEnum):
    """What a CI sees. Only REGRESSED blames the pull request."""

    OK = 0
    REGRESSED = 1  # proven, or numerics that changed and gate
    USAGE = 2  # wrong command line or invalid file; click's own code
    NO_ANSWER = 3  # crash, time-out, other machine, missing workload, unproven loss, our own bug
    INTERRUPTED = 130


class CiPerfError(Exception):
    """A failure with a message for a person, shown without a traceback.

    The message names the thing, what was expected, what was found and what to do next.
    ``output`` holds the last lines of a child process, which are shown fenced.
    """

    exit_code = ExitCode.NO_ANSWER

    def __init__(self, message: str, *, output: str = "") -> None:
        super().__init__(message)
        self.output = output


class InvalidFileError(CiPerfError):
    """A file does not say what it must say: a run, a baseline, a suite."""

    exit_code = ExitCode.USAGE


class UsageError(CiPerfError):
    """The command was asked for something that does not exist or does not fit together."""

    exit_code = ExitCode.USAGE


class RefusedError(CiPerfError):
    """A run that must not become a baseline."""


class CannotWriteError(CiPerfError):
    """The target could not be written; what stood there before is intact."""


class BusyError(CiPerfError):
    """The device did not become free in time."""


class EngineError(CiPerfError):
    """The engine is not there, or refuses: the machine is to blame, and never a change."""


# What no commit is to blame for: it would stop every other one as well.
OF_MACHINE = (BusyError, EngineError, CannotWriteError)
