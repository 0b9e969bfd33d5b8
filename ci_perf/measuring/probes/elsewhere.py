"""Try a part of a step in a further process: with other variables, or for the second time."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from ci_perf.measuring.probes import Bench, CannotTryError
from ci_perf.model import task
from ci_perf.model.proof import Probed
from ci_perf.system import files

_MODULE = "ci_perf.measuring.probes.process"


def probed(bench: Bench, part: str, **variables: str) -> Probed:
    """Return what a fresh process says. Raises CannotTryError with the last line of its output."""
    with tempfile.TemporaryDirectory() as folder:
        arguments = (str(os.getpid()), part, bench.name, str(bench.torch.get_num_threads()))
        ended = subprocess.run(
            [sys.executable, "-P", "-m", _MODULE, folder, *arguments],
            env={**os.environ, **variables},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        if ended.returncode != 0:
            last = ended.stdout.decode(errors="replace").strip().splitlines()[-1:]
            reason = f"a process for {part} ended with {ended.returncode}"
            raise CannotTryError(": ".join([reason, *last]))
        return files.read(Path(folder) / task.RESULT, Probed)


def figures(bench: Bench, part: str, **variables: str) -> dict[str, float]:
    """Return the figures of a fresh process by name. Raises CannotTryError."""
    answer = probed(bench, part, **variables)
    if answer.not_tried:
        raise CannotTryError(answer.not_tried)
    return {figure.name: figure.value for figure in answer.figures}
