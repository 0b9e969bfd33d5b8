"""A workload that runs a command: `ci-perf check --against main -- python train.py`.

Each step is a program of its own. Its time is that of the whole command by the clock, or of the
steps that the command reports itself.
"""

import collections
import math
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import msgspec

from ci_perf.measuring.server import Server, find_free_port
from ci_perf.model.process import WorkerResult
from ci_perf.model.step_report import REPORT_VARIABLE, StepReport
from ci_perf.model.suite import parse_metric
from ci_perf.system import files
from ci_perf.workload import Context, Workload

# Of what a command prints, where it fails.
_LAST_LINES = 30
_OF_ENTRY = {"command", "metric", "skip", "require", "server", "ready", "ready_s"}
# What a text of the entry may name, and the file of a run.
_PLACE = re.compile(r"\{([A-Za-z0-9_-]+)\}")
_OUTPUT = "{output}"


def build(context: Context) -> Workload:
    """Return the workload; `context.parameters` are those of `model.suite.CommandEntry`.

    Its server is started. Raises RuntimeError: it does not get ready.
    """
    parameters = context.parameters
    values = {name: value for name, value in parameters.items() if name not in _OF_ENTRY}
    values.setdefault("port", find_free_port())

    def spell(name: str) -> str:
        """Return a text of the entry with the values that it names."""
        text = str(parameters.get(name, ""))
        return _PLACE.sub(lambda place: str(values.get(place[1], place[0])), text)

    program = RepeatedCommand(
        command=shlex.split(spell("command")),
        metric=str(parameters.get("metric", "")),
        skip=int(parameters.get("skip", 0)),
        require=str(parameters.get("require", "")),
        server=_start_server(spell("server"), spell("ready"), float(parameters.get("ready_s", 0))),
    )
    return Workload(
        step=program.run,
        item_unit="run" if not program.metric else "step",
        is_fresh=True,
        output=program.find_losses,
        reported_s=program.find_step_times,
        add_report=program.add_report,
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
    ``server`` that it puts load on, a run counts as failed.
    """

    command: list[str]
    metric: str = ""
    skip: int = 0
    require: str = ""
    server: Server | None = None
    _step_times_s: list[float] = field(default_factory=list)
    _report: StepReport | None = None

    def run(self) -> None:
        """Run it to its end.

        Raises RuntimeError: it cannot be started, ends with another code, or its loop too early.

        Its output goes to a file: a pipe would end only with all that it leaves behind.
        """
        pattern, unit_s = parse_metric(self.metric)
        required = re.compile(self.require)
        is_as_required = False
        last: collections.deque[str] = collections.deque(maxlen=_LAST_LINES)
        times_s: list[float] = []
        shown = shlex.join(self.command)
        with (
            tempfile.TemporaryDirectory(prefix="ci-perf-report-") as folder,
            tempfile.TemporaryFile("w+", errors="replace") as output,
        ):
            report, written = Path(folder, "report.json"), Path(folder, "output")
            words = [word.replace(_OUTPUT, str(written)) for word in self.command]
            try:
                ended = subprocess.run(
                    words,
                    env={**os.environ, REPORT_VARIABLE: str(report)},
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    check=False,
                )
            except OSError as error:
                raise RuntimeError(f"{shown}: cannot be started: {error.strerror}") from None
            output.seek(0)
            lines = [*output]
            if words != self.command and not ended.returncode:
                lines += _read_lines(written, shown)
            for line in lines:
                last.append(line)
                is_as_required = is_as_required or bool(required.search(line))
                if pattern is not None and (match := pattern.search(line)):
                    times_s.append(_read_time(match[1], line) * unit_s)
            self._report = files.read(report, StepReport) if report.exists() else None
        if self.server is not None:
            self.server.check()
        if ended.returncode:
            sys.stdout.writelines(last)
            raise RuntimeError(f"{shown}: expected exit code 0, found {ended.returncode}")
        if self.require and not is_as_required:
            sys.stdout.writelines(last)
            raise RuntimeError(f"{shown}: expected a line with {self.require!r}, found none")
        self._step_times_s = list(islice(times_s, self.skip, None))
        if pattern is not None and not self._step_times_s:
            sys.stdout.writelines(last)
            raise RuntimeError(
                f"{shown}: expected more than {self.skip} lines with {pattern.pattern!r}, "
                f"found {len(times_s)}"
            )
        if self._report is not None and not self._report.steps_s:
            raise RuntimeError(
                f"{shown}: expected {self._report.asked} steps of its loop, found "
                f"{self._report.ended}; ask for fewer: ci_perf.steps(…, warmup=, steps=)"
            )

    def find_step_times(self) -> list[float]:
        """Return the step times that the last run has printed or reported, in seconds."""
        return self._step_times_s or list(self._report.steps_s if self._report else ())

    def find_losses(self) -> Sequence[float] | None:
        """Return the losses that the loop of the last run has reported, `None` without any."""
        return (self._report.losses if self._report else ()) or None

    def add_report(self, result: WorkerResult) -> WorkerResult:
        """Add what the loop of the last run has reported beside its times."""
        report = self._report
        if report is None:
            return result
        process = result.process
        memory = msgspec.structs.replace(process.memory, device=report.device_memory)
        process = msgspec.structs.replace(
            process, memory=memory, compiles=report.compiles or process.compiles
        )
        return msgspec.structs.replace(
            result, items_per_step=report.items_per_step, item_unit="item", process=process
        )


def _read_lines(file: Path, shown: str) -> list[str]:
    """Return the lines that a command has written. Raises RuntimeError: there is no file."""
    if not file.is_file():
        raise RuntimeError(f"{shown}: expected a file at {_OUTPUT}, found none")
    return file.read_text(encoding="utf-8", errors="replace").splitlines(keepends=True)


def _read_time(text: str, line: str) -> float:
    """Return the number that a command has printed. Raises RuntimeError: none above 0."""
    try:
        time = float(text)
    except ValueError:
        time = 0.0
    if not 0 < time < math.inf:
        raise RuntimeError(f"expected a time above 0, found {text!r} in {line.strip()!r}")
    return time
