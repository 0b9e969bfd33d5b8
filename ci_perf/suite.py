"""Make a plan from suite.toml and a folder of workload files, without importing a workload."""

import ast
import itertools
import math
import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import msgspec

from ci_perf import hooks
from ci_perf.errors import InvalidFileError, UsageError
from ci_perf.judging import launch_numbers, policy
from ci_perf.model import codec, container, metrics
from ci_perf.model.base import OUTSIDE_SUITES, Scalar
from ci_perf.model.environment import Software
from ci_perf.model.suite import (
    READS_TEXT,
    TESTS_PROTOCOL,
    Entry,
    Limit,
    LimitChange,
    LimitEntry,
    Limits,
    Plan,
    PlannedWorkload,
    Protocol,
    SuiteFile,
    SuiteSpec,
    find_limit,
    is_selected,
)
from ci_perf.system import files

BUILTIN = "builtin:"
# The suite of a folder without suite.toml, and the one that is meant where several are there.
DEFAULT, USUAL = "default", "smoke"
# More workloads than this from one entry is a slip: at some seconds each they take hours.
MAX_POINTS = 1000
_LIMITED = list(metrics.LIMITED)
# Ranks run on one host, which has a few GPUs.
MAX_WORLD_SIZE = 64
_PROTOCOL_KEYS = list(Protocol.__struct_fields__)
_SOFT_FACTS = list(Software.__struct_fields__)
# A line of `ci-perf list`; more than this is no longer a description.
_MAX_DESCRIPTION_CHARS = 200
# The id is the name of the baseline's file, and a file's name ends at 255 bytes.
_MAX_ID_CHARS = 200
_UNSAFE = re.compile(r"[^A-Za-z0-9_+-]+")
# The workload file of every command.
_COMMAND_FILE = Path(__file__).parent / "measuring" / "command.py"


def find_shipped(name: str) -> Path:
    """Return the folder of this name that comes with ci-perf: "workloads" or "examples".

    In a wheel they lie inside the package; in a checkout at the root of the repository.
    """
    package = Path(__file__).parent
    inside = package / "_shipped" / name
    return inside if inside.is_dir() else package.parent / name


def locate(suite: str, folder: Path) -> tuple[str, Path]:
    """Resolve "builtin:smoke" to the suite's name and the shipped folder, others to `folder`."""
    if suite in OUTSIDE_SUITES:
        return suite.removeprefix(BUILTIN), folder
    if suite.startswith(BUILTIN):
        return suite.removeprefix(BUILTIN), find_shipped("workloads")
    return suite, folder


def choose(folder: Path, name: str = "") -> str:
    """Return the suite that is meant: `smoke` or the only one, where none is named.

    Raises InvalidFileError (suite.toml), and UsageError: there are several.
    """
    if name or files.is_missing(folder / "suite.toml"):
        return name or DEFAULT
    names = sorted(load(folder).suites)
    if USUAL in names:
        return USUAL
    if len(names) == 1:
        return names[0]
    raise UsageError(
        f"{folder / 'suite.toml'}: expected --suite NAME, or a suite {USUAL!r}, found "
        f"{', '.join(names) or 'no suite'}"
    )


def exists(folder: Path) -> bool:
    """Whether there is a suite: suite.toml, or a workload without one."""
    return not files.is_missing(folder / "suite.toml") or bool(_find_workloads(folder))


def _find_workloads(folder: Path) -> list[str]:
    """Name the files that may be workloads: helpers begin with an underscore."""
    return sorted(file.stem for file in folder.glob("*.py") if not file.name.startswith("_"))


def load(folder: Path) -> SuiteFile:
    """Read and check FOLDER/suite.toml. Raises InvalidFileError that names the key.

    Without one, each file of the folder is a workload of the suite `default`.
    """
    path = folder / "suite.toml"
    if files.is_missing(path):
        workloads = [{"workload": name} for name in _find_workloads(folder)]
        if not workloads:
            raise InvalidFileError(
                f"{folder}: expected workloads (*.py), or a suite.toml that names them, found "
                "neither; `ci-perf init` writes a first one, `--workloads DIR` looks elsewhere, "
                "`--suite builtin:smoke` uses the shipped suite"
            )
        return codec.convert(
            {"suites": {DEFAULT: {"workloads": workloads}}}, SuiteFile, name=str(folder)
        )
    try:
        data = tomllib.loads(files.read_text(path))
    except RecursionError:
        raise InvalidFileError(f"{path}: expected TOML, found it nested too deep") from None
    except ValueError as error:  # also a number of more digits than Python reads
        raise InvalidFileError(f"{path}: expected TOML, found: {error}") from None
    suite_file = codec.convert(data, SuiteFile, name=str(path))
    _check(suite_file, folder, path)
    return suite_file


def plan(
    folder: Path,
    suite: str,
    *,
    selection: tuple[str, ...] = (),
    root: Path,
    protocol: Mapping[str, Scalar] | None = None,
    defaults: Limits | None = None,
) -> Plan:
    """Resolve suite `suite` of `folder`; `protocol` overrides what suite.toml says.

    `defaults` are the limits that suite.toml leaves out, those of a GPU without any.
    Raises InvalidFileError (suite.toml) and UsageError (no such suite, no such workload).
    """
    name, folder = locate(suite, folder)
    suite_file = load(folder)
    spec = _suite(suite_file, name, folder)
    planned = tuple(_expand(suite_file, spec, folder, name, protocol or {}))
    tests = tuple(_plan_tests(suite_file, spec, folder, name, protocol or {}))
    if not planned and not tests:
        raise InvalidFileError(
            f"{folder / 'suite.toml'}: $.suites.{name}.workloads: expected at least one workload, "
            "command or test, found none"
        )
    if not tests:
        check_selection(selection, [workload.id for workload, _ in planned], suite)
    made = Plan(
        suite=suite,
        root=_resolve_path(root),
        selection=selection,
        tiers=suite_file.environment,
        limits=_limits(
            suite_file,
            name,
            planned,
            defaults or policy.limits_on(None),
            path=folder / "suite.toml",
        ),
        device=spec.device,
        canaries=spec.canaries,
        fail_on=spec.fail_on,
        fresh=spec.fresh,
        setup=suite_file.setup,
        python_path=suite_file.python_path,
        container=suite_file.container,
        workloads=tuple(w for w, _ in planned if is_selected(w.id, selection)),
        commands=bool(spec.commands),
        tests=tests,
    )
    # What could not be written must be refused now, not when everything has been measured.
    return codec.decode(
        codec.encode(made), Plan, name=f"{folder / 'suite.toml'}: the plan of {suite!r}"
    )


def plan_screening(plan: Plan, launches: Mapping[str, int]) -> Plan:
    """Return a plan that launches each workload no more often than its screen needs."""
    return msgspec.structs.replace(
        plan,
        workloads=tuple(
            msgspec.structs.replace(
                workload,
                protocol=msgspec.structs.replace(
                    workload.protocol,
                    processes=min(workload.protocol.processes, launches[workload.id]),
                ),
            )
            for workload in plan.workloads
        ),
    )


def describe(path: Path) -> str:
    """Return the first line of the file's docstring, by parsing; empty when there is none."""
    try:
        text = ast.get_docstring(ast.parse(files.read_text(path))) or ""
    except (SyntaxError, ValueError, RecursionError, MemoryError, InvalidFileError):
        return ""  # the run will say what is wrong with the file
    # An escape in the source can spell half a character, which no file can hold.
    line = text.partition("\n")[0].encode(errors="replace").decode()
    short = len(line) <= _MAX_DESCRIPTION_CHARS
    return line if short else line[: _MAX_DESCRIPTION_CHARS - 1] + "…"


def _check(suite_file: SuiteFile, folder: Path, path: Path) -> None:
    """Check what the types cannot: names of metrics, protocol settings and workload files."""
    available = _find_workloads(folder)
    for where, part in _list_parts(suite_file):
        own = {metric.name for metric in metrics.find_own(part.limits)}
        _check_keys(part.limits.keys() - own, _LIMITED, f"{path}: {where}.limits", "metric")
        _check_keys(part.protocol, _PROTOCOL_KEYS, f"{path}: {where}.protocol", "setting")
        if isinstance(part, Entry):
            _check_matrix(part, f"{path}: {where}.matrix")
            _check_world_size(part, f"{path}: {where}")
    _check_keys(suite_file.environment.hard, _SOFT_FACTS, f"{path}: $.environment.hard", "fact")
    _check_image(suite_file.container.image, f"{path}: $.container.image")
    for name, spec in suite_file.suites.items():
        if name.startswith("builtin"):
            raise InvalidFileError(
                f"{path}: $.suites.{name}: this prefix is reserved for ci-perf; choose another"
            )
        if spec.commands and spec.device != "cpu":
            raise InvalidFileError(
                f"{path}: $.suites.{name}.device: expected 'cpu' beside commands, found "
                f"{spec.device!r}: a command is timed by the clock of the host, even with a GPU"
            )
        for index, command in enumerate(spec.commands):
            where = f"{path}: $.suites.{name}.commands[{index}].reads"
            known = [READS_TEXT, *hooks.find_formats()]
            _check_keys(filter(None, [command.reads.partition(":")[0]]), known, where, "format")
        for index, tests in enumerate(spec.pytest):
            where = f"{path}: $.suites.{name}.pytest[{index}].protocol"
            _check_keys(tests.protocol, _PROTOCOL_KEYS, where, "setting")
        for index, entry in enumerate(spec.workloads):
            if entry.workload not in available:
                hint = codec.did_you_mean(entry.workload, available)
                raise InvalidFileError(
                    f"{path}: $.suites.{name}.workloads[{index}].workload: expected a file "
                    f"{folder / entry.workload}.py, found none; {hint}"
                )


def _check_image(image: str, where: str) -> None:
    """Refuse what is no reference; whether it is pinned matters to whoever measures in it."""
    try:
        if image:
            container.parse_reference(image)
    except ValueError as error:
        raise InvalidFileError(f"{where}: {error}") from None


def _check_matrix(entry: Entry, where: str) -> None:
    points = math.prod(len(values) for values in entry.matrix.values())
    if points > MAX_POINTS:
        raise InvalidFileError(
            f"{where}: expected at most {MAX_POINTS} combinations, found {points}; leave some "
            "out, or make several entries"
        )
    for key, values in entry.matrix.items():
        _check_different(values, f"{where}.{key}")


def _check_world_size(entry: Entry, where: str) -> None:
    """Refuse a number of ranks that is none, before any launch."""
    name = launch_numbers.WORLD_SIZE
    given = {f"{where}.parameters.{name}": entry.parameters.get(name, 1)}
    for index, value in enumerate(entry.matrix.get(name, ())):
        given[f"{where}.matrix.{name}[{index}]"] = value
    for place, value in given.items():
        number = value if isinstance(value, int) and not isinstance(value, bool) else 0
        if not 1 <= number <= MAX_WORLD_SIZE:
            raise InvalidFileError(
                f"{place}: expected an integer from 1 to {MAX_WORLD_SIZE}, found {value!r}; "
                "this parameter is reserved for the number of ranks or devices"
            )


def _list_parts(suite_file: SuiteFile) -> Iterator[tuple[str, SuiteFile | SuiteSpec | Entry]]:
    """Yield what may have limits and a protocol, with its place in the file."""
    yield "$", suite_file
    for name, spec in suite_file.suites.items():
        yield f"$.suites.{name}", spec
        for place, entry, _ in _entries_of_suite(spec, Path()):
            yield f"$.suites.{name}.{place}", entry


def _entries_of_suite(spec: SuiteSpec, folder: Path) -> Iterator[tuple[str, Entry, Path]]:
    """Yield each entry with its place in the table of the suite, and its workload file."""
    for index, entry in enumerate(spec.workloads):
        yield f"workloads[{index}]", entry, folder / f"{entry.workload}.py"
    for index, command in enumerate(spec.commands):
        yield f"commands[{index}]", command.to_entry(), _COMMAND_FILE


def _check_different(values: tuple[Scalar, ...], where: str) -> None:
    """Refuse two values that would give their workloads the same id."""
    seen: set[str] = set()
    for value in values:
        if (spelled := _spell_value(value)) in seen:
            raise InvalidFileError(
                f"{where}: expected values that make different ids, found {spelled!r} twice"
            )
        seen.add(spelled)


def _check_keys(keys: Iterable[str], known: list[str], where: str, kind: str) -> None:
    for key in keys:
        if key not in known:
            hint = codec.did_you_mean(key, known)
            raise InvalidFileError(f"{where}: unknown {kind} {key!r}; {hint}")


def _suite(suite_file: SuiteFile, name: str, folder: Path) -> SuiteSpec:
    if name not in suite_file.suites:
        hint = codec.did_you_mean(name, list(suite_file.suites))
        has_file = not files.is_missing(folder / "suite.toml")
        place = folder / "suite.toml" if has_file else f"{folder}, without a suite.toml"
        raise UsageError(f"{place}: no suite {name!r}; {hint}")
    return suite_file.suites[name]


def _expand(
    suite_file: SuiteFile,
    spec: SuiteSpec,
    folder: Path,
    suite: str,
    override: Mapping[str, Scalar],
) -> Iterator[tuple[PlannedWorkload, Entry]]:
    """Make one planned workload per entry and point of its matrix, in the order of the file."""
    seen: set[str] = set()
    for place, entry, file in _entries_of_suite(spec, folder):
        where = f"{folder / 'suite.toml'}: $.suites.{suite}.{place}"
        merged = {**suite_file.protocol, **spec.protocol, **entry.protocol, **override}
        protocol = codec.convert(merged, Protocol, name=f"{where}.protocol")
        for values in itertools.product(*entry.matrix.values()):
            point = dict(zip(entry.matrix, values, strict=True))
            identity = _identity(entry, point)
            if identity in seen:
                raise InvalidFileError(
                    f"{where}: expected a new id, found {identity!r} again; give one of the "
                    "entries a `name`"
                )
            if len(identity) > _MAX_ID_CHARS:
                raise InvalidFileError(
                    f"{where}: expected an id of at most {_MAX_ID_CHARS} characters, found "
                    f"{len(identity)} in '{identity[:40]}…'; shorten `name` or a value of `matrix`"
                )
            seen.add(identity)
            parameters = {**entry.parameters, **point}
            yield (
                PlannedWorkload(
                    id=identity,
                    file=_resolve_path(file),
                    description=describe(file),
                    parameters=parameters,
                    protocol=protocol,
                    launch="command" if file == _COMMAND_FILE else entry.launch,
                    world_size=launch_numbers.world_size(parameters),
                    inputs=tuple(sorted({*suite_file.inputs, *entry.inputs})),
                    own_statistic="statistic" in merged,
                ),
                entry,
            )


def _plan_tests(
    suite_file: SuiteFile,
    spec: SuiteSpec,
    folder: Path,
    suite: str,
    override: Mapping[str, Scalar],
) -> Iterator[PlannedWorkload]:
    """Make of each entry of tests what all of its workloads have in common."""
    for index, entry in enumerate(spec.pytest):
        own = {**suite_file.protocol, **spec.protocol, **entry.protocol, **override}
        where = f"{folder / 'suite.toml'}: $.suites.{suite}.pytest[{index}].protocol"
        chosen = [("-k", entry.keyword), ("-m", entry.marker)]
        yield PlannedWorkload(
            id="pytest",
            file="pytest",
            description="",
            parameters={},
            protocol=codec.convert({**TESTS_PROTOCOL, **own}, Protocol, name=where),
            launch="fork",
            inputs=tuple(sorted({*suite_file.inputs, *entry.inputs})),
            collects=(*entry.paths, *(word for pair in chosen if pair[1] for word in pair)),
            own_statistic="statistic" in own,
        )


def _identity(entry: Entry, point: Mapping[str, Scalar]) -> str:
    """`matmul.size=256.dtype=bf16`: readable, and safe in file names and shells."""
    parts = [f"{key}={_spell_value(value)}" for key, value in point.items()]
    return ".".join([entry.name or entry.workload, *parts])


def _spell_value(value: Scalar) -> str:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return _UNSAFE.sub("-", text)


def _resolve_path(path: Path) -> str:
    """Return the whole path. A circle of links is left for the run to report."""
    whole = os.path.realpath(path)
    try:
        whole.encode()
    except UnicodeEncodeError:
        raise InvalidFileError(f"{whole!r}: expected a path in UTF-8, found other bytes") from None
    return whole


def _limits(
    suite_file: SuiteFile,
    name: str,
    planned: tuple[tuple[PlannedWorkload, Entry], ...],
    defaults: Limits,
    *,
    path: Path,
) -> Limits:
    spec = suite_file.suites[name]
    default, of_tests = defaults.default, {**defaults.default, **policy.LIMITS_OF_TESTS}
    for where, table in (("$", suite_file.limits), (f"$.suites.{name}", spec.limits)):
        default, of_tests = (
            _change_limits(limits, table, f"{path}: {where}.limits")
            for limits in (default, of_tests)
        )
    return Limits(
        default=of_tests if spec.pytest else default,
        workloads={
            workload.id: _change_limits(
                default, entry.limits, f"{path}: the limits of {workload.id}"
            )
            for workload, entry in planned
        },
        trimmed=defaults.trimmed,
    )


def _change_limits(
    before: Mapping[str, Limit], entries: Mapping[str, LimitEntry], where: str
) -> dict[str, Limit]:
    """Apply a table of limits; of each, what it does not name stays."""
    after = dict(before)
    changes = {
        name: entry if isinstance(entry, LimitChange) else LimitChange(limit=entry)
        for name, entry in entries.items()
    }
    # A kind of own metrics comes before one of them, which begins with what is said of its kind.
    for name, change in sorted(_with_cpu_time(changes).items(), key=lambda each: "." in each[0]):
        try:
            known = find_limit(after, name) or Limit()
            after[name] = change.of(known, metrics.find_metric(_spell_kind(name)))
        except ValueError as error:
            raise InvalidFileError(f"{where}.{name}: {error}") from None
    return after


def _spell_kind(name: str) -> str:
    """Spell the limit of a kind of own metrics as that of one of them; any other as it is."""
    return f"{name}.any" if name in metrics.OWN_KINDS else name


def _with_cpu_time(changes: Mapping[str, LimitChange]) -> dict[str, LimitChange]:
    """Let what is said of the step time hold for its CPU time, where nothing is said of that."""
    step, cpu = changes.get(metrics.STEP_TIME.name), metrics.STEP_CPU.name
    if step is None or cpu in changes:
        return dict(changes)
    gate = False if step.gate is False else msgspec.UNSET
    return {**changes, cpu: msgspec.structs.replace(step, gate=gate)}


def check_selection(selection: tuple[str, ...], known: list[str], suite: str) -> None:
    """Refuse a name that selects nothing. Raises UsageError."""
    for name in selection:
        if not any(is_selected(workload, (name,)) for workload in known):
            names = sorted({workload.partition(".")[0] for workload in known})
            hint = codec.did_you_mean(name, [*names, *known])
            raise UsageError(f"suite {suite!r} has no workload {name!r}; {hint}")
