"""Write the first files of a user's repository: a suite, a workload, two workflows, .gitignore."""

import itertools
import json
import re
import shlex
import tomllib
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from ci_perf import suite
from ci_perf.errors import InvalidFileError, UsageError
from ci_perf.system import files

SUITE, EXAMPLE, IGNORED = (
    Path("workloads/suite.toml"),
    Path("workloads/example.py"),
    Path(".gitignore"),
)
# Each of these is a file of examples/workflows/, too.
WORKFLOWS = (Path(".github/workflows/perf.yml"), Path(".github/workflows/perf-baseline.yml"))
# How a coding agent asks for a measurement, in the form that agents look for.
SKILL = Path(".agents/skills/ci-perf/SKILL.md")
# What commands leave in the root of a repository.
RESULTS = ("/run.json", "/report.md", "/comparison.json", "/calibration-run.json")
_ACTION = re.compile(r"([A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+)@([0-9a-f]{40}|v\d+\.\d+\.\d+)")
_USED = re.compile(r"OWNER/ci_perf/(\S+)@0{40} #.*")
# What may be measured without any file of ours: as far as people keep them near the root.
_TESTS = ("test_*.py", "*/test_*.py", "*/*/test_*.py")
_BENCHMARK = re.compile(r"def test_\w+\([^)]*\bbenchmark\b|mark\.(?:codspeed_)?benchmark\b")
_TRAINERS = ("train.py", "scripts/train.py", "tools/train.py")
# The same as entries of a suite. Commands are timed by the clock of the host.
_CPU = '[suites.smoke]\ndevice = "cpu" # for commands, whatever they run on\n'
_TESTS_ENTRY = """
[[suites.smoke.pytest]]
paths = {paths}
"""
_TRAINER_ENTRY = """
[[suites.smoke.commands]]
name = "train"
command = "python {path}" # make it short, as with --max_iters=20
# metric = "step_ms=iter .*time ([0-9.]+)ms" # the step times that it prints: docs/commands.md
"""
# asv discards PYTHONPATH, by which each side imports its own packages.
_ASV_ENTRY = """
[[suites.smoke.commands]]
name = "asv"
command = "sh -c 'ASV_PYTHONPATH=$PWD asv run --python=same --set-commit-hash=HEAD'"
reads = "asv:{results}"
"""
_ASV_RESULTS = re.compile(r'^\s*"results_dir":\s*"([^"]+)"', re.MULTILINE)
_MOST_FILES, _MOST_NAMED = 1_000, 3
_TESTS_NEED = ("pytest", "greenlet")
_INSTALL = re.compile(r"^      install: .*\n", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstFiles:
    """What was written, and what was there and is as it was: paths below the directory."""

    written: tuple[Path, ...]
    kept: tuple[Path, ...]


def write(
    directory: Path, *, action: str | None, device: str, has_agents: bool = False
) -> FirstFiles:
    """Write the files that `directory` lacks, for runners with a GPU ("cuda") or without ("cpu").

    The suite is of the tests and commands that `directory` has, else of an example.
    `action` is the repository and the commit or tag from which the workflows take ci_perf; without
    it no workflow is written. `has_agents` adds a skill file for coding agents. Raises UsageError,
    InvalidFileError and CannotWriteError.
    """
    used = _ACTION.fullmatch(action or "")
    if action is not None and used is None:
        raise UsageError(
            "--action: expected OWNER/REPOSITORY@COMMIT with all 40 digits, or a tag such as "
            f"@v0.1.0, found {action!r}"
        )
    templates = resources.files("ci_perf.gate") / "templates"
    texts = {}
    if entries := _write_entries(directory):
        device = "cpu" if "commands]]" in entries else device
        head = _CPU if "commands]]" in entries else "[suites.smoke]\n"
        texts[SUITE] = f"schema_version = 1\n\n{head}{entries}"
    else:
        texts[EXAMPLE] = (templates / "example.py.template").read_text(encoding="utf-8")
        texts[SUITE] = (templates / "suite.toml").read_text(encoding="utf-8")
    if any(directory.glob("src/*/__init__.py")):
        texts[SUITE] = texts[SUITE].replace("\n", '\npython_path = ["src"]\n', 1)
    for path in WORKFLOWS if used else ():
        template = (suite.find_shipped("examples") / "workflows" / path.name).read_text("utf-8")
        text = template.replace("device: cuda", f"device: {device}")
        text = _USED.sub(rf"{used[1]}/\1@{used[2]}", text) if used else text
        needed = (*_list_needed(directory), *_TESTS_NEED * ("pytest]]" in texts[SUITE]))
        lines = "".join(f"        {package}\n" for package in needed)
        install = f"      install: |\n{lines}" if needed else ""
        if len(needed) == 1 and needed[0].startswith("--"):
            install = f"      install: {needed[0]}\n"
        texts[path] = _INSTALL.sub(install.replace("\\", r"\\"), text)
    if has_agents:
        texts[SKILL] = (templates / "skill.md").read_text(encoding="utf-8")
    # A link that leads nowhere is kept, too.
    places = {path: directory / path for path in texts}
    kept = [path for path, place in places.items() if place.exists() or place.is_symlink()]
    for path, text in texts.items():
        if path not in kept:
            _write(directory / path, text)
    written = [path for path in texts if path not in kept]
    (written if _ignore_results(directory / IGNORED) else kept).append(IGNORED)
    return FirstFiles(written=tuple(written), kept=tuple(kept))


def find_ready_checks(directory: Path) -> list[str]:
    """Return options of `ci-perf check` for what can be measured as it is: tests and a trainer."""
    paths = _find_tests(directory)
    return [
        *([" ".join(f"--pytest {shlex.quote(path)}" for path in paths)] if paths else []),
        *(f"-- python {name}" for name in _find_trainers(directory)),
    ]


def _find_tests(directory: Path) -> list[str]:
    """Return files with benchmarks of pytest; of many, their folders."""
    tests = [
        path.relative_to(directory)
        for pattern in _TESTS
        for path in itertools.islice(sorted(directory.glob(pattern)), _MOST_FILES)
        if path.is_file() and _BENCHMARK.search(path.read_text("utf-8", errors="replace"))
    ]
    folders = sorted({path.parent for path in tests})
    return [str(path) for path in (tests if len(tests) <= _MOST_NAMED else folders)]


def _find_trainers(directory: Path) -> list[str]:
    return [name for name in _TRAINERS if (directory / name).is_file()][:1]


def _write_entries(directory: Path) -> str:
    """Return the entries of a suite for the tests and commands that a directory has."""
    tests = _find_tests(directory)
    entries = [_TESTS_ENTRY.format(paths=json.dumps(tests))] if tests else []
    entries += [_TRAINER_ENTRY.format(path=path) for path in _find_trainers(directory)]
    if (asv := directory / "asv.conf.json").is_file():
        folders = _ASV_RESULTS.findall(files.read_text(asv)) or ["results"]
        entries.append(_ASV_ENTRY.format(results=folders[0]))
    return "".join(entries)


def repository(folder: Path) -> Path | None:
    """Return the root of the Git repository that a folder lies in."""
    return next((f for f in (folder, *folder.parents) if (f / ".git").exists()), None)


def _list_needed(directory: Path) -> list[str]:
    """Return the arguments of pip for what the project says that it needs."""
    if (directory / "requirements.txt").is_file():
        return ["--requirement=requirements.txt"]
    path = directory / "pyproject.toml"
    if not path.is_file():
        return []
    try:
        project = tomllib.loads(files.read_text(path)).get("project", {})
    except tomllib.TOMLDecodeError as error:
        raise InvalidFileError(f"{path}: expected TOML, found: {error}") from None
    needed = project.get("dependencies", []) if isinstance(project, dict) else []
    return [package for package in needed if isinstance(package, str)]


def _ignore_results(path: Path) -> bool:
    """Add to .gitignore what it lacks; say whether that was anything."""
    text = files.read_text(path) if path.is_file() else ""
    missing = [line for line in RESULTS if line not in text.splitlines()]
    if missing:
        before = f"{text}\n" if text and not text.endswith("\n") else text
        _write(path, before + "\n".join(missing) + "\n")
    return bool(missing)


def _write(path: Path, text: str) -> None:
    files.make_folder(path.parent)
    files.write_text(path, text)
