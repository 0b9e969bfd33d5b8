"""What is not in the repository and may change the path of a program, as one digest.

A record holds for these conditions. Too many of them cost a recording launch; one too few would
call another program the same.
"""

import os
from pathlib import Path

import msgspec

from ci_perf.model.environment import Environment
from ci_perf.model.program import blob, digest
from ci_perf.model.suite import PlannedWorkload, Setup
from ci_perf.version import __version__

# Raise it when a launch does something else with a workload, or a record means something else.
_BEHAVIOUR = 1

# They say how often and how long the same step runs, or what is made of its times. Any other
# setting of the protocol counts, also one that is added later.
HOW_OFTEN = frozenset(
    {
        "block_min_s",
        "launch_spread",
        "memory_steps",
        "monitor_hz",
        "phase_steps",
        "processes",
        "statistic",
        "timed_max_s",
        "timed_min_blocks",
        "timed_min_s",
        "timeout_s",
        "warmup_max_s",
        "warmup_min_s",
        "warmup_min_steps",
        "warmup_tolerance",
        "warmup_window",
    }
)


def conditions_digest(
    environment: Environment,
    workload: PlannedWorkload,
    *,
    root: Path,
    python_path: tuple[str, ...] = (),
    setup: Setup = Setup(),  # noqa: B008  frozen
) -> str:
    """Return the digest of a machine, its software and image, and how a workload is launched.

    `root` is the checkout of the workload. The kernel counts, although it changes often: libraries
    choose by its release (accelerate warns of old ones). What a machine has noted does not: its
    name, its load, and the amount of its memory, which no two boots report alike. Raises OSError
    where the file of a shipped workload cannot be read.
    """
    protocol = msgspec.structs.asdict(workload.protocol)
    facts = {
        "behaviour": (_BEHAVIOUR, __version__),
        "machine": environment.hard,
        "software": environment.soft,
        "image": environment.image,
        "file": _file(Path(workload.file), root),
        "parameters": workload.parameters,
        "protocol": {name: value for name, value in protocol.items() if name not in HOW_OFTEN},
        "launch": (workload.launch, workload.world_size, workload.slowdown),
        "inputs": workload.inputs,
        "python_path": python_path,
        "setup": setup.command,
    }
    return digest(msgspec.json.encode(facts, order="sorted"))


def _file(path: Path, root: Path) -> str:
    """Name the workload's file: another one may get its name in suite.toml.

    The record holds what is in a file below the root, but not in one that ships with ci-perf.
    """
    real = Path(os.path.realpath(path))
    top = Path(os.path.realpath(root))
    return str(real.relative_to(top)) if real.is_relative_to(top) else blob(real.read_bytes())
