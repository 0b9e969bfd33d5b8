"""Any other scheduler, by three commands of the fleet's owner: submit, poll, cancel.

`submit` is run once per attempt; in its words {script} is the program that a node must run, {job} a
name, {select} that of the class, {avoid} nodes to leave out, with commas. It answers with a handle,
one word in its last line. `poll` and `cancel` get handles on stdin, a line each. `poll` answers
with lines "HANDLE STATE [NODE [DETAIL]]", and STATE is queued, running, ended or lost; a handle
that it leaves out is lost.
"""

import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import get_args

from ci_perf.errors import EngineError
from ci_perf.fleet import node
from ci_perf.fleet.engine import EngineJob, JobState, Observation, Placed
from ci_perf.model.fleet import Attempt, CommandTable
from ci_perf.system import processes

_POLL_S = 5.0
_MOST_CHARS = 500
_STATES: dict[str, JobState] = {state: state for state in get_args(JobState)}


class CommandEngine:
    """Runs the owner's commands, which must submit each attempt once and never again."""

    def __init__(self, table: CommandTable, *, python: str, poll_s: float = _POLL_S) -> None:
        self._table, self._python = table, python
        self.poll_s = poll_s

    def submit(self, job: EngineJob) -> Mapping[str, str]:
        """See FleetEngine: either all attempts are submitted, or those that were are cancelled."""
        placed: list[Placed] = []
        try:
            for attempt in job.attempts:
                handle = _handle(self._submission(job, attempt))
                placed.append(Placed(attempt=attempt, handle=handle))
        except EngineError:
            self.cancel(placed)
            raise
        return {p.attempt.nonce: p.handle for p in placed}

    def poll(self, placed: Sequence[Placed]) -> Mapping[str, Observation]:
        """See FleetEngine."""
        nonces = {p.handle: p.attempt.nonce for p in placed if p.handle}
        answer = _ask(self._table.poll, given=_lines(nonces))
        seen = dict(_observation(line, self._table.poll[0]) for line in answer.splitlines() if line)
        return {nonces[handle]: seen[handle] for handle in nonces if handle in seen}

    def cancel(self, placed: Sequence[Placed]) -> None:
        """See FleetEngine: what has no handle was never heard of, and its nonce fences it."""
        handles = [p.handle for p in placed if p.handle]
        if handles:
            _ask(self._table.cancel, given=_lines(handles))

    def close(self) -> None:
        """See FleetEngine: the scheduler keeps its jobs itself."""

    def _submission(self, job: EngineJob, attempt: Attempt) -> list[str]:
        script = Path(job.file).with_suffix(f".{attempt.index}.sh")
        agent = shlex.join([self._python, "-P", "-m", node.MODULE, job.file, str(attempt.index)])
        script.write_text(f"#!/bin/sh\nexec {agent}\n", encoding="utf-8")
        script.chmod(0o755)
        words = {
            "{script}": str(script),
            "{job}": f"{job.name}-{attempt.index}",
            "{select}": job.node_class.select,
            "{avoid}": ",".join(job.avoid),
        }
        return [_filled(word, words) for word in self._table.submit]


def _handle(command: Sequence[str]) -> str:
    """Return the last line of what a submission answers: one word. Raises EngineError."""
    lines = _ask(command).strip().splitlines()
    if not lines:
        raise EngineError(f"{command[0]}: expected a handle on stdout, found nothing")
    handle = lines[-1].strip()
    if len(handle.split()) != 1 or len(handle) > _MOST_CHARS:
        raise EngineError(
            f"{command[0]}: expected a handle of one word on the last line of stdout, as poll "
            f"answers by it, found {handle[:_MOST_CHARS]!r}"
        )
    return handle


def _filled(word: str, words: Mapping[str, str]) -> str:
    for name, value in words.items():
        word = word.replace(name, value)
    return word


def _lines(handles: Sequence[str] | Mapping[str, str]) -> bytes:
    return "".join(f"{handle}\n" for handle in handles).encode()


def _ask(command: Sequence[str], given: bytes = b"") -> str:
    try:
        with processes.stream(command, environment=os.environ, given=given) as output:
            return output.read().decode(errors="replace")
    except OSError as error:
        raise EngineError(f"{command[0]}: cannot be started: {error.strerror}") from None
    except processes.FailedProgramError as error:
        said = " ".join(str(error).split()) or "nothing"
        raise EngineError(f"{command[0]}: failed: {said[:_MOST_CHARS]}") from None


def _observation(line: str, command: str) -> tuple[str, Observation]:
    """Read one line of `poll`. Raises EngineError."""
    parts = line.split(maxsplit=3)
    if len(parts) < 2 or parts[1] not in _STATES:
        raise EngineError(
            f"{command}: expected HANDLE STATE [NODE [DETAIL]], and STATE one of "
            f"{', '.join(_STATES)}; found {line[:200]!r}"
        )
    handle, state, *rest = parts
    host, detail = (*rest, "", "")[:2]
    return handle, Observation(
        state=_STATES[state], node=host[:_MOST_CHARS], detail=detail[:_MOST_CHARS]
    )
