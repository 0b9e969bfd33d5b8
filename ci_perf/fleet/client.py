"""Ask an engine by its command line."""

from collections.abc import Sequence

from ci_perf.errors import EngineError
from ci_perf.system import processes
from ci_perf.system.processes import Completed

# A controller of a cluster that is busy takes half a minute; one that is gone, for ever.
_TIMEOUT_S = 60.0
_MOST_CHARS = 500


def ask(command: Sequence[str], *, timeout_s: float = _TIMEOUT_S) -> str:
    """Return what a command answers. Raises EngineError with its words: it failed."""
    answer = completed(command, timeout_s=timeout_s)
    if answer.code:
        raise EngineError(failure(command, answer))
    return answer.out


def completed(command: Sequence[str], *, timeout_s: float = _TIMEOUT_S) -> Completed:
    """Run a command to its end, whatever that is. Raises EngineError: it cannot, or has none."""
    try:
        return processes.capture(command, timeout_s=timeout_s)
    except OSError as error:
        raise EngineError(
            f"{command[0]}: cannot be started: {error.strerror}; is the engine's client installed, "
            "and in PATH?"
        ) from None
    except TimeoutError:
        raise EngineError(f"{command[0]}: expected an answer in {timeout_s:g} s") from None


def failure(command: Sequence[str], answer: Completed) -> str:
    """Say in one sentence what a command that failed has said."""
    lines = (answer.err or answer.out or "nothing").splitlines()
    said = " ".join(line.strip() for line in lines if line.strip())
    return f"{command[0]}: exit code {answer.code}: {said[:_MOST_CHARS]}"
