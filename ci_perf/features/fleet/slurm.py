"""Slurm: all units as one job array, of which Slurm requeues what a node loses."""

import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path

from ci_perf.errors import EngineError
from ci_perf.features.fleet.unit import KEPT, UnitFolder
from ci_perf.system import files

_MOST_CHARS = 500


def run(
    units: Sequence[UnitFolder],
    *,
    options: Sequence[str],
    python: str,
    name: str,
    at_once: int | None,
) -> None:
    """Submit an array, and wait until it has ended; cancel it where we are ended.

    Raises EngineError with sbatch's words: it has not taken the array.
    """
    folder = units[0].path.parent
    command = [
        *("sbatch", "--wait", "--parsable", "--requeue", f"--job-name={name}"),
        f"--array=0-{len(units) - 1}" + (f"%{at_once}" if at_once else ""),
        f"--output={str(folder / name).replace('%', '%%')}.%a.log",
        # Names only: a variable that is not set here is left out. No credential is named.
        f"--export={','.join(sorted(KEPT))}",
        *options,
        str(_script(folder / f"{name}.sh", units, python)),
    ]
    try:
        ended = subprocess.run(
            command, capture_output=True, stdin=subprocess.DEVNULL, text=True, check=False
        )
    except FileNotFoundError:
        raise EngineError(
            "sbatch: expected Slurm's own command in PATH, found none; run this on a node that may "
            "submit jobs"
        ) from None
    except KeyboardInterrupt:
        # --full: the batch script is signalled, too, and what it has started.
        subprocess.run(["scancel", "--full", "--me", f"--name={name}"], check=False)
        raise
    if not ended.stdout.strip():  # with a number, the code is that of the units
        said = " ".join(ended.stderr.split())[:_MOST_CHARS]
        raise EngineError(f"sbatch: exit code {ended.returncode}: {said}")


def _script(path: Path, units: Sequence[UnitFolder], python: str) -> Path:
    """Write what Slurm runs on a node: the unit whose place in the array it has."""
    folders = shlex.join(str(unit.path) for unit in units)
    command = shlex.join([python, "-P", "-m", "ci_perf.features.fleet.unit"])
    text = (
        "#!/bin/sh\n"
        f"set -- {folders}\n"
        'shift "$SLURM_ARRAY_TASK_ID"\n'
        f'{command} "$1"\n'
        "code=$?\n"
        'echo "exit code $code on $SLURMD_NODENAME" > "$1/ended.txt"\n'
        'exit "$code"\n'
    )
    files.write_text(path, text)
    return path
