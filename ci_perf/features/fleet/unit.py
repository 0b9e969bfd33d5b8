"""Run a unit on a node: `python -P -m ci_perf.features.fleet.unit FOLDER [PARENT]`.

FOLDER must be the same folder for the node and for who submits the unit. What the unit says is in
its log there. With PARENT the process ends when that parent does.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ci_perf.model.base import Struct, Text
from ci_perf.system import files, linux, scratch

RUN, LOG = "run.json", "log.txt"
_JOB, _ENDED = "job.json", "ended.txt"
_MOST_LINES, _MOST_CHARS = 5, 500
# What a unit is given of its node's environment: what a shell, CUDA and Python need to work. A list
# of what is allowed, so that no credential slips through under a name that nobody thought of.
KEPT = frozenset(
    {
        *("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TEMP", "TMP", "TMPDIR", "TZ"),
        *("USER", "LD_LIBRARY_PATH", "PYTHONPATH", "VIRTUAL_ENV", "CONDA_PREFIX"),
        *("CUDA_DEVICE_ORDER", "CUDA_HOME", "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"),
        # A command keeps these: see docs/commands.md.
        *("OMP_NUM_THREADS", "MKL_NUM_THREADS", "TOKENIZERS_PARALLELISM", "HF_HUB_OFFLINE"),
        *("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"),
        *("HF_HOME", "XDG_CACHE_HOME", "CI_PERF_DATA_DIR", "CI_PERF_LOCK_DIR", "CI_PERF_NODE"),
    }
)


class UnitJob(Struct, frozen=True, kw_only=True):
    """What a node is to run: a command, in the folder ``root``."""

    command: tuple[Text, ...]
    root: Text


@dataclass(frozen=True, slots=True)
class UnitFolder:
    """The folder of a unit: what a node is told, and what it leaves."""

    path: Path

    def prepare(self, job: UnitJob) -> None:
        """Say what is to be run, and remove what an earlier try has left."""
        if self.path.exists():
            scratch.remove_tree(self.path)
        files.make_folder(self.path)
        files.write(self.path / _JOB, job)

    def command(self, python: str, *parent: str) -> list[str]:
        """Return the command that an engine starts on a node."""
        # -P: the checkout must not be imported in our place.
        return [python, "-P", "-m", "ci_perf.features.fleet.unit", str(self.path), *parent]

    def note_end(self, how: str) -> None:
        """Keep how the engine says that the unit ended."""
        files.write_text(self.path / _ENDED, how)

    def ending(self) -> str:
        """Say how a unit without a run ended: by its engine, and by the end of its log."""
        said = [_last_words(self.path / name) for name in (_ENDED, LOG)]
        return ": ".join(filter(None, said)) or f"it has left no {RUN}"


def _last_words(path: Path) -> str:
    """Return the last lines of a file that a stranger may have written; empty without one."""
    if path.is_symlink() or not path.is_file():
        return ""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 4 * _MOST_CHARS))
        lines = file.read().decode(errors="replace").split("\n")
    kept = [line.strip() for line in lines if line.strip()][-_MOST_LINES:]
    return " / ".join(kept)[-_MOST_CHARS:]


def environment_for_unit(ours: Mapping[str, str]) -> dict[str, str]:
    """Return what a unit is given of an environment."""
    return {name: value for name, value in ours.items() if name in KEPT}


def main(arguments: Sequence[str]) -> None:
    """Become the command of a unit. Raises CiPerfError and OSError, which its engine keeps."""
    folder, *parent = arguments
    if parent:
        linux.end_with_parent(int(parent[0]))
    job = files.read(Path(folder, _JOB), UnitJob)
    log = os.open(Path(folder, LOG), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.chdir(job.root)
    os.execvpe(job.command[0], job.command, environment_for_unit(os.environ))  # noqa: S606


if __name__ == "__main__":
    main(sys.argv[1:])
