"""Slurm by its command line: arrays, one `squeue` per look, no accounting database."""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from ci_perf.errors import EngineError
from ci_perf.fleet import client, node
from ci_perf.fleet.engine import EngineJob, JobState, Observation, Placed
from ci_perf.model.fleet import SlurmTable

# Kind to a controller that everybody asks; within the 5 s in which a lost node must be noticed.
_POLL_S = 3.0
# Arguments of one `scancel`.
_CHUNK = 200
# https://slurm.schedmd.com/squeue.html, "JOB STATE CODES". What is not here is lost: NODE_FAIL,
# BOOT_FAIL, CANCELLED, PREEMPTED, REVOKED, and states that nobody has told us of.
_STATES: dict[str, JobState] = {
    **dict.fromkeys(
        ("PENDING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "RESV_DEL_HOLD", "SPECIAL_EXIT"),
        "queued",
    ),
    **dict.fromkeys(
        # COMPLETING: processes of the job may still be there.
        (
            "COMPLETING",
            "CONFIGURING",
            "RESIZING",
            "RUNNING",
            "SIGNALING",
            "STAGE_OUT",
            "STOPPED",
            "SUSPENDED",
        ),
        "running",
    ),
    **dict.fromkeys(("COMPLETED", "DEADLINE", "FAILED", "OUT_OF_MEMORY", "TIMEOUT"), "ended"),
}
_UNKNOWN_JOB = "Invalid job id"


class SlurmEngine:
    """A job array per submission. Slurm must not requeue: a hidden retry is another measurement."""

    poll_s = _POLL_S

    def __init__(self, table: SlurmTable, *, python: str, environment: Sequence[str]) -> None:
        self._table, self._python = table, python
        self._exported = ",".join(sorted({*node.KEPT, *environment}))

    def submit(self, job: EngineJob) -> Mapping[str, str]:
        """See FleetEngine. Raises EngineError with sbatch's words."""
        script = Path(job.file).with_suffix(".sh")
        agent = shlex.join([self._python, "-P", "-m", node.MODULE, job.file])
        script.write_text(f"#!/bin/sh\nexec {agent}\n", encoding="utf-8")
        output = Path(job.file).with_suffix("")
        command = [
            *("sbatch", "--parsable"),
            *self._table.options,
            *([f"--gres={job.node_class.select}"] if job.node_class.select else []),
            *([f"--exclude={','.join(job.avoid)}"] if job.avoid else []),
            f"--array=0-{len(job.attempts) - 1}",
            *("--no-requeue", "--open-mode=truncate", f"--job-name={job.name}"),
            f"--output={_literally(output)}.%a.log",
            # Names only: a variable that is not set here is left out. No credential is named.
            f"--export={self._exported}",
            str(script),
        ]
        # "JOBID", or "JOBID;CLUSTER" where there are several clusters.
        number = client.ask(command).splitlines()[-1].split(";")[0].strip()
        if not number.isdecimal():
            raise EngineError(f"sbatch: expected the number of a job, found {number[:200]!r}")
        return {attempt.nonce: f"{number}_{attempt.index}" for attempt in job.attempts}

    def poll(self, placed: Sequence[Placed]) -> Mapping[str, Observation]:
        """See FleetEngine: one `squeue`, however many jobs there are."""
        # By user: asked for a job that it has forgotten, squeue would fail for all of them.
        asked = ["squeue", "--noheader", "--me", "--states=all", "--array", "--format=%i|%T|%N|%r"]
        seen = dict(_observation(line) for line in client.ask(asked).splitlines() if line.strip())
        return {p.attempt.nonce: seen[p.handle] for p in placed if p.handle in seen}

    def cancel(self, placed: Sequence[Placed]) -> None:
        """See FleetEngine."""
        handles = [p.handle for p in placed if p.handle]
        for start in range(0, len(handles), _CHUNK):
            _cancel(handles[start : start + _CHUNK])
        for name in sorted({p.attempt.job for p in placed if not p.handle}):
            _cancel(["--me", f"--name={name}"])

    def close(self) -> None:
        """See FleetEngine: Slurm keeps its jobs itself."""


def _cancel(what: Sequence[str]) -> None:
    # --full: the batch script is signalled, too, and ends its command in its own way.
    command = ["scancel", "--full", *what]
    answer = client.completed(command)
    lines = [line for line in answer.err.splitlines() if line.strip()]
    if answer.code and not all(_UNKNOWN_JOB in line for line in lines):
        raise EngineError(client.failure(command, answer))


def _observation(line: str) -> tuple[str, Observation]:
    """Read one line of squeue. Raises EngineError."""
    parts = line.strip().split("|", maxsplit=3)
    if len(parts) != 4:
        raise EngineError(f"squeue: expected ID|STATE|NODES|REASON, found {line[:200]!r}")
    handle, state, nodes, why = parts
    detail = state if why in {"None", ""} else f"{state}, {why}"
    return handle, Observation(state=_STATES.get(state, "lost"), node=nodes, detail=detail)


def _literally(path: Path) -> str:
    """Spell a path for --output, where "%" begins a pattern."""
    return str(path).replace("%", "%%")
