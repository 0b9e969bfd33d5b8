"""Baselines, records of programs and documents of a machine on disk: where, and how in a diff."""

import difflib
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePath

import msgspec

from ci_perf.errors import InvalidFileError
from ci_perf.judging import metric_values
from ci_perf.judging.policy import KIND_OF
from ci_perf.model import codec, metrics
from ci_perf.model.baseline import (
    MAX_SESSIONS,
    Baseline,
    Calibration,
    RecordedSession,
)
from ci_perf.model.environment import CpuMachine, Machine, is_same
from ci_perf.model.metrics import Unit
from ci_perf.model.process import Fingerprint
from ci_perf.model.program import Program
from ci_perf.model.rehearsed import Rehearsed, RehearsedSuite
from ci_perf.model.summary import Numbers
from ci_perf.system import files

# Enough to recompute every verdict, little enough to read; noise lives in the third digit.
PROCESS_DIGITS = 6
HEADLINE_DIGITS = 4
# A number in fp32 has nine digits at most, and a change in the last one must be seen.
FINGERPRINT_DIGITS = 9
# Units that are counted one by one.
_WHOLE = frozenset({Unit.BYTE, Unit.COUNT, Unit.FLOP})
_RECORDED = frozenset(metric.name for metric in metrics.RECORDED)
# The metrics that may have an epoch: those that may have a verdict, and the numerics.
_JUDGED = (*(metric.name for metric in metrics.JUDGED), metrics.FINGERPRINT)
# No step is shorter than a picosecond, no memory larger than an exabyte.
SMALLEST, LARGEST = 1e-12, 1e18
_UNSAFE = re.compile(r"[^a-z0-9]+")
# Words in the names of CPUs and GPUs that only make folders longer.
_FILLER = re.compile(r"\((r|tm)\)|\b(processor|cpu)\b|@.*$")
# File systems allow 255 bytes for the name of a folder.
_MAX_KEY_CHARS = 80

CALIBRATION, REHEARSED = "calibration.json", "rehearsed.json"
RECORDS = "programs"


def folder(root: Path, machine: Machine, suite: str) -> Path:
    """Return the folder of one class of machine and one suite ("builtin-smoke")."""
    return root / machine_key(machine) / folder_name(suite)


def path(root: Path, machine: Machine, suite: str, workload: str) -> Path:
    """Return the file of one workload."""
    return folder(root, machine, suite) / f"{workload}.json"


def machine_key(machine: Machine) -> str:
    """Name the class of this machine: "nvidia-h200", "cpu-amd-epyc-2-cores".

    That of commands beside a GPU is "cpu-amd-epyc-2-cores-nvidia-h200".

    A name, not an identity: the file carries all hard facts, and those are compared.
    """
    if isinstance(machine, CpuMachine):
        gpus = f"-{_slug(machine.gpus)}" if machine.gpus else ""
        return f"cpu-{_slug(machine.cpu_model)}-{machine.logical_cores}-cores{gpus}"
    count = f"-x{machine.gpu_count}" if machine.gpu_count > 1 else ""
    mig = "-mig" if machine.mig and "mig" not in machine.gpu_model.lower() else ""
    return _slug(machine.gpu_model) + count + mig


def read(file: Path) -> Baseline:
    """Read and check one baseline. Raises InvalidFileError that names file, place and value."""
    baseline = read_anywhere(file)
    check_place(baseline.suite, baseline.workload, file)
    return baseline


def check_place(suite: str, workload: str, file: PurePath) -> None:
    """Check that a file lies where its suite and workload belong. Raises InvalidFileError."""
    if folder_name(suite) != file.parent.name:
        raise InvalidFileError(
            f"{file}: $.suite: expected {file.parent.name!r}, the name of the folder, "
            f"found {suite!r}"
        )
    if workload != file.stem:
        raise InvalidFileError(
            f"{file}: $.workload: expected {file.stem!r}, the name of the file, found {workload!r}"
        )


def read_anywhere(file: Path) -> Baseline:
    """Read and check a baseline that may lie outside its folder, as git gives it to a merge."""
    baseline = files.read(file, Baseline)
    for i, session in enumerate(baseline.sessions):
        check_session(session, f"{file}: $.sessions[{i}]")
    _check_headline(baseline, f"{file}: $.headline")
    return baseline


def check_session(session: RecordedSession, where: str) -> None:
    """Check the names and ranges of one session. Raises InvalidFileError that begins so."""
    for name in (*session.epochs, *session.until):
        if name not in _JUDGED and not metrics.find_own([name]):
            hint = codec.did_you_mean(name, list(_JUDGED))
            raise InvalidFileError(f"{where}.epochs: unknown metric {name!r}; {hint}")
    for i, numbers in enumerate(session.processes):
        _check(numbers, f"{where}.processes[{i}]")
    for name, seconds in session.canaries.items():
        _check_range(seconds, f"{where}.canaries.{name}", zero=False)


def read_all(root: Path, machine: Machine, suite: str) -> tuple[Baseline, ...]:
    """Read the baselines of this class of machine, by name of workload.

    Where there are none, those of the class with the most similar name: they cannot be compared,
    and the comparison can then say what differs.
    """
    own = folder(root, machine, suite)
    if not own.is_dir():
        own = _nearest(root, own) or own
    return tuple(read(file) for file in sorted(own.glob("*.json")))


def read_everything(root: Path, suite: str = "*") -> tuple[Baseline, ...]:
    """Read the baselines of every class of machine, and of one suite or all, by path."""
    return tuple(read(file) for file in sorted(root.glob(f"*/{folder_name(suite)}/*.json")))


def write(root: Path, baseline: Baseline) -> Path:
    """Write one baseline whole or not at all; return its path."""
    file = path(root, baseline.machine, baseline.suite, baseline.workload)
    write_anywhere(file, baseline)
    return file


def write_anywhere(file: Path, baseline: Baseline) -> None:
    """Write one baseline to a path that git chose."""
    _write_checked(file, render(baseline), Baseline)


def _write_checked(file: Path, text: str, kind: type[msgspec.Struct]) -> None:
    """Write a document whole or not at all, and never what could not be read again."""
    codec.decode(text, kind, name=str(file))
    files.make_folder(file.parent)
    files.write_text(file, text)


def read_calibration(root: Path, machine: Machine) -> Calibration | None:
    """Return the calibration of this machine below `root`; `None` where there is none.

    A file of other hard facts is of another machine, which only has the same name. Raises
    InvalidFileError that names file, place and value.
    """
    file = root / machine_key(machine) / CALIBRATION
    if files.is_missing(file):
        return None
    calibration = files.read(file, Calibration)
    return calibration if is_same(calibration.machine, machine) else None


def write_calibration(root: Path, calibration: Calibration) -> Path:
    """Write a calibration whole or not at all; return its path."""
    file = root / machine_key(calibration.machine) / CALIBRATION
    _write_checked(file, readable(calibration), Calibration)
    return file


def read_rehearsed(root: Path, machine: Machine) -> Rehearsed | None:
    """Return what was rehearsed on this machine, as `read_calibration` does."""
    file = root / machine_key(machine) / REHEARSED
    if files.is_missing(file):
        return None
    rehearsed = files.read(file, Rehearsed)
    return rehearsed if is_same(rehearsed.machine, machine) else None


def write_rehearsed(root: Path, machine: Machine, suite: RehearsedSuite) -> Path:
    """Write the rehearsal of a suite beside those of others; return the path."""
    before = read_rehearsed(root, machine)
    suites = {**(before.suites if before else {}), suite.provenance.suite: suite}
    file = root / machine_key(machine) / REHEARSED
    _write_checked(file, readable(Rehearsed(machine=machine, suites=suites)), Rehearsed)
    return file


def headline(baseline: Baseline) -> Numbers:
    """Return the centre of each judged metric in its epoch, for the reviewer of a diff."""
    judged = metric_values.find_judged(baseline.sessions)
    sessions = {metric: _current(baseline, metric.name) for metric in judged}
    return {
        metric.name: _round_number(
            metric.name, metric_values.centre(metric.kind, values), HEADLINE_DIGITS
        )
        for metric, values in sorted(sessions.items(), key=lambda item: item[0].name)
        if values
    }


def with_headline(baseline: Baseline) -> Baseline:
    """Return the same baseline with the headline that follows from its sessions."""
    return msgspec.structs.replace(baseline, headline=headline(baseline))


def newest_sessions(history: Iterable[RecordedSession]) -> tuple[RecordedSession, ...]:
    """Return the newest sessions, as many as a file keeps, oldest first."""
    return tuple(sorted(history, key=_age))[-MAX_SESSIONS:]


def round_numbers(numbers: Numbers) -> Numbers:
    """Round to the digits that a baseline keeps; what is judged comes first."""
    ordered = sorted(numbers.items(), key=lambda item: (item[0] in _RECORDED, item[0]))
    return {name: _round_number(name, value, PROCESS_DIGITS) for name, value in ordered}


def round_fingerprint(fingerprint: Fingerprint) -> Fingerprint:
    """Round to the digits that a number in fp32 has."""
    return msgspec.structs.replace(
        fingerprint,
        losses=tuple(float(f"{loss:.{FINGERPRINT_DIGITS}g}") for loss in fingerprint.losses),
        checksums=tuple(
            float(f"{value:.{FINGERPRINT_DIGITS}g}") for value in fingerprint.checksums
        ),
    )


def render(baseline: Baseline) -> str:
    """Write for people and git: headline first, the numbers of one process on one line."""
    document = msgspec.to_builtins(baseline)
    for session in document["sessions"]:
        for key in ("epochs", "until"):
            if not session[key]:
                del session[key]  # most metrics never move, and then nothing needs to be said
    parts = {key: _render(value, "  ") for key, value in document.items()}
    # One metric a line: the first lines of a diff say what moved.
    parts["headline"] = _object({k: _render(v, "") for k, v in document["headline"].items()}, "  ")
    return _object(parts, "") + "\n"


def readable(document: msgspec.Struct) -> str:
    """Render another document in the same form: a file of a record is on a line of its own."""
    return _render(msgspec.to_builtins(document), "") + "\n"


def _render(value: object, indent: str) -> str:
    """Render a list of structures with an item a line, and plain values on one line."""
    deeper = indent + "  "
    if isinstance(value, Mapping):
        parts = {key: _render(item, deeper) for key, item in value.items()}
        if any(isinstance(item, Mapping | list | tuple) for item in value.values()):
            return _object(parts, indent)
        return "{" + ", ".join(f"{json.dumps(k)}: {v}" for k, v in parts.items()) + "}"
    if isinstance(value, list | tuple):
        if not any(isinstance(item, Mapping | list | tuple) for item in value):
            return "[" + ", ".join(_render(item, deeper) for item in value) + "]"
        body = ",\n".join(deeper + _render(item, deeper) for item in value)
        return f"[\n{body}\n{indent}]"
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # bytes and counts
    return json.dumps(value, ensure_ascii=False)


def _object(parts: Mapping[str, str], indent: str) -> str:
    body = ",\n".join(f"{indent}  {json.dumps(key)}: {text}" for key, text in parts.items())
    return f"{{\n{body}\n{indent}}}"


def _slug(text: str) -> str:
    words = _UNSAFE.sub("-", _FILLER.sub(" ", text.lower())).strip("-")
    return words[:_MAX_KEY_CHARS].strip("-") or "unknown"


def folder_name(suite: str) -> str:
    """Spell a suite as a folder: "builtin:smoke" as "builtin-smoke"."""
    return suite.replace(":", "-")


def _nearest(root: Path, own: Path) -> Path | None:
    others = {f.parent.name: f for f in root.glob(f"*/{own.name}") if any(f.glob("*.json"))}
    near = difflib.get_close_matches(own.parent.name, sorted(others), n=1, cutoff=0.0)
    return others[near[0]] if near else None


def _current(baseline: Baseline, name: str) -> list[list[float]]:
    return [
        metric_values.list_session_values(session, name)
        for session in metric_values.current_sessions(baseline.sessions, name)
    ]


def _age(session: RecordedSession) -> tuple[int, str]:
    """Sort by accepted changes before time.

    A branch may measure late, and without a change that was merged meanwhile. Its session describes
    older code, and must not be the latest.
    """
    return sum(session.epochs.values()), session.recorded_at


def _check(numbers: Numbers, where: str) -> None:
    for name, value in numbers.items():
        metric = metrics.find_metric(name)
        if metric is None:
            hint = codec.did_you_mean(name, list(metrics.BY_NAME))
            raise InvalidFileError(f"{where}: unknown metric {name!r}; {hint}")
        # Metrics with an interval are judged by their logarithms.
        zero = metric.kind not in KIND_OF
        _check_range(value, f"{where}.{name}", zero=zero)


def _check_headline(baseline: Baseline, where: str) -> None:
    """Refuse a headline that was edited by hand; the message names the metrics that differ."""
    follows, said = headline(baseline), baseline.headline
    differ = [name for name in sorted({*follows, *said}) if follows.get(name) != said.get(name)]
    if not differ:
        return
    expected, there = (
        ", ".join(f"{name} {numbers.get(name, 'absent')}" for name in differ)
        for numbers in (follows, said)
    )
    raise InvalidFileError(
        f"{where}: the sessions give {expected}, found {there}; restore the file from git, or "
        "write it again with `ci-perf accept`"
    )


def _check_range(value: float, where: str, *, zero: bool) -> None:
    if not (zero and value == 0) and not SMALLEST <= value <= LARGEST:
        expected = f"a number > 0{' or 0' if zero else ''}, up to {LARGEST:g}"
        raise InvalidFileError(f"{where}: expected {expected}, found {value}")


def _round_number(name: str, value: float, digits: int) -> float:
    """Round to significant digits; what is counted keeps them all where it is larger."""
    known = metrics.find_metric(name)
    if value == 0 or (known and known.unit in _WHOLE and value >= 10**digits):
        return float(round(value))
    return float(f"{value:.{digits}g}")


def program_file(baseline: Path) -> Path:
    """Return the file of the record that belongs to a baseline file."""
    return baseline.parent / RECORDS / baseline.name


def read_program(root: Path, machine: Machine, suite: str, workload: str) -> Program | None:
    """Return the committed record of a workload; `None` without one. Raises InvalidFileError."""
    file = program_file(path(root, machine, suite, workload))
    if files.is_missing(file):
        return None
    program = files.read(file, Program)
    if program.workload != workload:
        raise InvalidFileError(
            f"{file}: $.workload: expected {workload!r}, the name of the file, found "
            f"{program.workload!r}"
        )
    return program


def program_of_newest_session(
    root: Path, machine: Machine, suite: str, workload: str
) -> Program | None:
    """Return the committed record if it is of the program that the newest session has measured.

    An older one describes another program than the numbers may stand for. Raises InvalidFileError.
    """
    program = read_program(root, machine, suite, workload)
    file = path(root, machine, suite, workload)
    if program is None or files.is_missing(file):
        return None
    return program if read(file).sessions[-1].run == program.run else None


def write_program(file: Path, program: Program) -> None:
    """Write one record whole or not at all."""
    _write_checked(file, readable(program), Program)
