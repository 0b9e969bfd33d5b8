"""What a step tells its runner: outputs, the job summary, a warning. No network."""

import secrets
from collections.abc import Mapping
from pathlib import Path

from ci_perf.errors import CannotWriteError

# GitHub drops a summary that is longer, all of it.
MAX_SUMMARY_BYTES = 2**20


def write(path: Path, values: Mapping[str, str]) -> None:
    """Add outputs to the file $GITHUB_OUTPUT. Raises CannotWriteError.

    Each value stands between two lines that nobody can guess: it cannot become another output.
    """
    text = ""
    for name, value in values.items():
        delimiter = f"ci_perf_{secrets.token_hex(16)}"
        assert delimiter not in value
        text += f"{name}<<{delimiter}\n{value}\n{delimiter}\n"
    _append(path, text)


def summary_room(path: Path) -> int:
    """Return how many bytes the job summary of this step still takes."""
    try:
        return max(0, MAX_SUMMARY_BYTES - path.stat().st_size - 1)
    except OSError:
        return MAX_SUMMARY_BYTES


def summarise(path: Path, text: str) -> None:
    """Add Markdown to the file $GITHUB_STEP_SUMMARY. Raises CannotWriteError."""
    if len(text.encode()) > summary_room(path):
        raise CannotWriteError(
            f"the job summary: expected at most {MAX_SUMMARY_BYTES:,} bytes with what the step has "
            "already written to it, found more; GitHub would drop all of it"
        )
    _append(path, text.rstrip("\n") + "\n")


def warning(text: str) -> str:
    """Spell a command by which the runner shows `text` on the page of the run."""
    escaped = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return f"::warning title=ci-perf::{escaped}"


def _append(path: Path, text: str) -> None:
    try:
        with path.open("a", encoding="utf-8", newline="") as file:
            file.write(text)
    except OSError as error:
        raise CannotWriteError(f"{path}: cannot be written: {error.strerror}") from None
