"""A workload that runs a command: `ci-perf check --against main -- python train.py`.

Each step is a program of its own. Its time is that of the whole command by the clock, or of the
steps that the command reports itself.
"""

import contextlib
import functools
import math
import os
import re
import shlex
import statistics
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import msgspec

from ci_perf.measuring.own_metrics import Numbers, OwnMetrics, find_middle, join_runs, stamp
from ci_perf.measuring.printed_steps import Output, TurnOutput, Untouched
from ci_perf.measuring.server import Server, find_free_port
from ci_perf.measuring.turn_client import TurnTaker
from ci_perf.model.process import Printing, WorkerResult
from ci_perf.model.step_report import ANOTHER_PROCESS, REPORT_VARIABLE, StepReport
from ci_perf.model.suite import parse_metric
from ci_perf.model.task import CommandTurn
from ci_perf.system import files, limits, linux, scratch
from ci_perf.workload import Context, Workload

# Of what a command prints, where it fails.
_LAST_LINES = 30
_OF_ENTRY = {"command", "metric", "skip", "require", "reads", "metrics"}
_OF_ENTRY |= {"server", "ready", "ready_s"}
# Of CPU time. A sane pattern reads some hundred megabytes meanwhile.
_MATCHING_S = 30
_MOST_CHARS = 2**20
# What a text of the entry may name, and the file of a run.
_PLACE = re.compile(r"\{([A-Za-z0-9_-]+)\}")
_OUTPUT = "{output}"
# Of a run, in its folder: what a loop of the command reports.
_REPORT = "report.json"


def build(context: Context) -> Workload:
    """Return the workload; `context.parameters` are those of `model.suite.CommandEntry`.

    Its server is started. Raises RuntimeError: it does not get ready.
    """
    parameters = context.parameters
    values = {name: value for name, value in parameters.items() if name not in _OF_ENTRY}
    if any("{port}" in str(parameters.get(name)) for name in ("command", "server", "ready")):
        values.setdefault("port", find_free_port())

    def spell(name: str) -> str:
        """Return a text of the entry with the values that it names."""
        text = str(parameters.get(name, ""))
        return _PLACE.sub(lambda place: str(values.get(place[1], place[0])), text)

    reads = str(parameters.get("reads", ""))
    program = RepeatedCommand(
        command=shlex.split(spell("command")),
        metric=str(parameters.get("metric", "")),
        skip=int(parameters.get("skip", 0)),
        require=str(parameters.get("require", "")),
        own=OwnMetrics(reads, str(parameters.get("metrics", ""))) if reads else None,
        server=_start_server(spell("server"), spell("ready"), float(parameters.get("ready_s", 0))),
    )
    # Later launches find its files in the caches of the system; a server is a new one in each.
    if context.launch == 0 or program.server is not None:
        program.warm_up()
    return Workload(
        step=program.run,
        item_unit="run" if not program.metric else "step",
        is_fresh=True,
        output=program.find_losses,
        reported_s=program.find_step_times,
        metrics=program.find_metrics,
        add_report=program.add_report,
        run_by_turn=program.run_by_turn,
        teardown=program.server.stop if program.server else None,
    )


def _start_server(command: str, ready: str, ready_s: float) -> Server | None:
    if not command:
        return None
    log = tempfile.TemporaryFile("w+", errors="replace")  # noqa: SIM115  ends with the launch
    server = Server(command, ready, ready_s, log)
    server.start()
    return server


@dataclass
class RepeatedCommand:
    """A command that is run again and again, and what it has printed or reported last.

    The step times that it prints count before those that a loop of it reports. What it writes to
    the file "{output}" counts as printed. Without a match of ``require`` in all that, or of the
    ``server`` that it puts load on, a run counts as failed. To find its numbers may take
    ``matching_s`` of CPU time.
    """

    command: list[str]
    metric: str = ""
    skip: int = 0
    require: str = ""
    own: OwnMetrics | None = None
    server: Server | None = None
    matching_s: int = _MATCHING_S
    _peak_bytes: int = 0
    _printed: list[int] = field(default_factory=list)
    _step_times_s: list[float] = field(default_factory=list)
    _printing: Printing | None = None
    _report: StepReport | None = None
    _numbers: list[Numbers] = field(default_factory=list)

    def run_by_turn(self, turn: CommandTurn, taker: TurnTaker) -> list[float]:
        """Run it to its end beside its copy; return the step time of each turn. Raises as `run`."""

        def find(line: str) -> float | None:
            match = pattern.search(line) if pattern else None
            with contextlib.suppress(ValueError):  # said at the end
                return _read_time(match[1], line) * unit_s if match else None
            return None

        pattern, unit_s = parse_metric(self.metric)
        output = TurnOutput(turn, taker, find, skip=self.skip)
        self.run(output)
        blocks = output.end()
        self._note_printing(output, 0.0)
        self._step_times_s = [time_s for times_s in blocks for time_s in times_s]
        return list(map(statistics.median, blocks))

    def run(self, printed: Output | None = None) -> None:
        """Run it to its end. ``printed`` watches what it prints, if that is timed.

        Raises RuntimeError: it cannot be started, ends with another code, or its loop too early; or
        it lacks a number, or has one that means nothing.
        """
        shown = shlex.join(self.command)
        with contextlib.ExitStack() as stack:
            folder = stack.enter_context(scratch.folder()).path
            written = folder / "output"
            before = stamp(self.own.find_file(written)) if self.own else None
            # A pipe would end only with all that the command leaves behind.
            output = stack.enter_context(tempfile.TemporaryFile("w+", errors="replace"))
            try:
                watched = (printed or Untouched()) if self.metric else None
                code = self._execute(folder, written, output, watched)
            except OSError as error:
                raise RuntimeError(
                    f"{shown}: cannot start {self.command[0]!r}: {error.strerror}"
                ) from None
            if self.server is not None:
                self.server.check()
            try:
                _check_exit(code)
                timed, numbers = self._read(output, written, before)
                if isinstance(watched, Untouched):
                    self._note_printing(watched, watched.check(timed, self.skip))
                self._take_steps([time_s for _, time_s in timed], folder / _REPORT)
                recorded = self._report.metrics if self._report else {}
                numbers |= {name: find_middle(name, of) for name, of in recorded.items()}
                self._numbers.append(numbers)
            except ValueError as error:
                sys.stdout.writelines(deque(_split(output), maxlen=_LAST_LINES))
                raise RuntimeError(f"{shown}: {error}") from None

    def warm_up(self) -> None:
        """Run it once, and keep none of its numbers. Raises RuntimeError as `run`."""
        self.run()
        self._numbers.clear()
        self._printed.clear()
        self._printing = None
        self._peak_bytes = 0

    def _note_printing(self, output: Output, longest_s: float) -> None:
        """Keep what speaks against turns; of several runs, what does so first."""
        before = self._printing or Printing()
        self._printing = Printing(
            against=before.against or output.against, longest_s=max(before.longest_s, longest_s)
        )

    def _execute(self, folder: Path, written: Path, output: IO[str], watched: Output | None) -> int:
        """Return the exit code, and keep the peak of the largest process."""
        pipe = None
        with contextlib.ExitStack() as stack:
            to: int | IO[str] = output
            if watched is not None:
                # What the command leaves behind keeps its end: ours stays open, too.
                pipe, to = os.pipe()
                stack.callback(os.close, to)
            process = subprocess.Popen(
                [word.replace(_OUTPUT, str(written)) for word in self.command],
                env={**os.environ, REPORT_VARIABLE: str(folder / _REPORT)},
                stdin=subprocess.DEVNULL,
                stdout=to,
                stderr=subprocess.STDOUT,
                preexec_fn=functools.partial(linux.end_with_parent, os.getpid()),  # noqa: PLW1509
            )
        if watched is not None and pipe is not None:
            watched.copy(process.pid, pipe, output.fileno())
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        self._peak_bytes = max(self._peak_bytes, linux.rss_bytes(usage))
        return process.returncode

    def _read(
        self, output: IO[str], written: Path, before: int | None
    ) -> tuple[list[tuple[int, float]], Numbers]:
        """Return the step times that were printed, and the numbers of `own`. Raises ValueError.

        With each time stands the number of its line, from 1 on.
        """
        writes = self.own is None and any(_OUTPUT in word for word in self.command)
        if writes and not written.is_file():
            raise ValueError(f"expected a file at {_OUTPUT}, found none")

        def read_lines() -> Iterator[str]:
            yield from _split(output)
            if writes:
                with written.open(encoding="utf-8", errors="replace") as file:
                    yield from _split(file)

        def read() -> tuple[list[tuple[int, float]], Numbers]:
            numbers = self.own.read_run(read_lines(), written, before) if self.own else {}
            return self._find_times(read_lines()), numbers

        is_read = self.metric or self.require or self.own
        return limits.call_within(self.matching_s, read) if is_read else ([], {})

    def _find_times(self, lines: Iterable[str]) -> list[tuple[int, float]]:
        """Return all times that lines have, each with the number of its line. Raises ValueError."""
        pattern, unit_s = parse_metric(self.metric)
        required = re.compile(self.require)
        is_missing = bool(self.require)
        times_s = []
        for number, line in enumerate(lines, 1):
            is_missing = is_missing and not required.search(line)
            if pattern is not None and (match := pattern.search(line)):
                times_s.append((number, _read_time(match[1], line) * unit_s))
        if is_missing:
            raise ValueError(f"expected a line with {self.require!r}, found none")
        if pattern is not None and len(times_s) <= self.skip:
            raise ValueError(
                f"expected more than {self.skip} lines with {pattern.pattern!r}, "
                f"found {len(times_s)}"
            )
        return times_s

    def _take_steps(self, times_s: Sequence[float], report: Path) -> None:
        """Keep the step times that were printed or reported. Raises ValueError."""
        self._printed += [len(times_s)] if self.metric else []
        self._step_times_s = [*times_s[self.skip :]]
        if report.with_name(ANOTHER_PROCESS).exists():
            raise ValueError(
                "expected one process with ci_perf.steps or ci_perf.record, found several; keep "
                "it in the one that is meant (of several ranks, RANK=0 reports)"
            )
        self._report = files.read(report, StepReport) if report.exists() else None
        if self._report is not None and self._report.asked and not self._report.steps_s:
            raise ValueError(
                f"expected {self._report.asked} steps of its loop, found {self._report.ended}; "
                "ask for fewer: ci_perf.steps(…, warmup=, steps=)"
            )

    def find_step_times(self) -> list[float]:
        """Return the step times that the last run has printed or reported, in seconds."""
        return self._step_times_s or list(self._report.steps_s if self._report else ())

    def find_metrics(self) -> dict[str, float]:
        """Return the user's own metrics, of all runs so far."""
        return join_runs(self._numbers)

    def find_losses(self) -> Sequence[float] | None:
        """Return the losses that the loop of the last run has reported, `None` without any."""
        return (self._report.losses if self._report else ()) or None

    def add_report(self, result: WorkerResult) -> WorkerResult:
        """Add the largest process in the place of ours, and what a loop has reported."""
        report, process = self._report, result.process
        memory = msgspec.structs.replace(process.memory, host_rss_peak_bytes=self._peak_bytes)
        printed = round(statistics.fmean(self._printed), 3) if self._printed else None
        process = msgspec.structs.replace(process, memory=memory, printed_times=printed)
        result = msgspec.structs.replace(result, printing=self._printing)
        if report is None:
            return msgspec.structs.replace(result, process=process)
        memory = msgspec.structs.replace(memory, device=report.device_memory)
        process = msgspec.structs.replace(
            process, memory=memory, compiles=report.compiles or process.compiles
        )
        result = msgspec.structs.replace(result, process=process)
        if not report.asked:
            return result
        return msgspec.structs.replace(
            result, items_per_step=report.items_per_step, item_unit="item"
        )


def _check_exit(code: int) -> None:
    if code:
        raise ValueError(f"expected exit code 0, found {code}")


def _split(file: IO[str]) -> Iterator[str]:
    """Yield the lines of a file from its beginning, of one that never ends its parts."""
    file.seek(0)
    yield from iter(functools.partial(file.readline, _MOST_CHARS), "")


def _read_time(text: str, line: str) -> float:
    """Return the number that a command has printed. Raises ValueError: none above 0."""
    try:
        time = float(text)
    except ValueError:
        time = 0.0
    if not 0 < time < math.inf:
        raise ValueError(f"expected a time above 0, found {text!r} in {line.strip()!r}")
    return time
