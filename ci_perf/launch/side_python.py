"""The environment that launches a side: a Python and its packages, and how those of two differ."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from ci_perf.errors import UsageError
from ci_perf.launch import child_environment
from ci_perf.model.base import MAX_ERROR_CHARS
from ci_perf.model.run import EnvironmentDifference
from ci_perf.version import __version__

_OLDEST = (3, 11)
_ANSWER_S = 120.0
# Where our own process has its Python.
_OF_OUR_PYTHON = ("PYTHONHOME", "VIRTUAL_ENV", "__PYVENV_LAUNCHER__")
# What most likely explains a change of time comes first; "nvidia-" stands for all that begin so.
_LIKELY = ("torch", "pytorch-triton", "triton", "nvidia-", "cuda", "cudnn", "numpy", "python")
# Of us, which measures both sides.
_OURS = {"ci-perf"}
# Runs in any Python, so it uses nothing of ours, and nothing new. Writes to a file that is named.
ASK = """
import json, sys
said = {"version": list(sys.version_info[:3])}
if sys.version_info >= (3, 11):
    import importlib.metadata as metadata
    import importlib.util
    installed = list(metadata.distributions())[::-1]  # the first on the path counts
    said["packages"] = {each.metadata["Name"] or "": each.version or "" for each in installed}
    said["modules"] = {name: of[0] for name, of in metadata.packages_distributions().items() if of}
    said["has_torch"] = importlib.util.find_spec("torch") is not None
    said["has_msgspec"] = importlib.util.find_spec("msgspec") is not None
    if importlib.util.find_spec("ci_perf") is not None:
        import ci_perf
        said["ci_perf"] = getattr(ci_perf, "__version__", "of an unknown version")
(open(sys.argv[1], "w") if sys.argv[1:] else sys.stdout).write(json.dumps(said))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SidePython:
    """What launches a side: a Python, and folders of packages that it searches before its own.

    With an `image`, the Python is of that image.
    """

    python: str = field(default_factory=lambda: sys.executable)
    packages: tuple[str, ...] = ()
    image: str = ""

    def build_environment(self, ours: Mapping[str, str]) -> dict[str, str]:
        """Return the variables by which programs of the side find this Python and its packages."""
        changed = dict(ours)
        if self.python != sys.executable:
            for name in _OF_OUR_PYTHON:
                changed.pop(name, None)
            changed["PATH"] = os.pathsep.join([str(Path(self.python).parent), ours.get("PATH", "")])
        if self.packages:
            kept = [ours["PYTHONPATH"]] if ours.get("PYTHONPATH") else []
            changed["PYTHONPATH"] = os.pathsep.join([*self.packages, *kept])
        return changed


class Installed(msgspec.Struct, frozen=True, kw_only=True):
    """What a Python says of itself; of one that is too old, only its version."""

    version: tuple[int, int, int]
    packages: dict[str, str] = {}
    modules: dict[str, str] = {}
    has_torch: bool = False
    has_msgspec: bool = False
    ci_perf: str = ""


def ask(side: SidePython) -> Installed:
    """Ask a Python what it has installed. Raises UsageError: it is none."""
    last: list[str] = []
    try:
        done = subprocess.run(
            [side.python, "-c", ASK],
            cwd="/",
            env=side.build_environment(os.environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_ANSWER_S,
            check=False,
        )
        last = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
        return msgspec.convert(json.loads(done.stdout), Installed)
    except OSError as error:
        why = error.strerror
    except subprocess.TimeoutExpired:
        why = f"no answer within {_ANSWER_S:g} s"
    except (ValueError, msgspec.ValidationError):
        why = f"a program that says nothing as Python does{''.join(f': {line}' for line in last)}"
    raise UsageError(
        f"{side.python}: expected a Python, such as /venvs/old/bin/python, found: {why}"[
            :MAX_ERROR_CHARS
        ]
    )


def open_base(path: Path, folder: Path, files: Collection[Path]) -> tuple[SidePython, str]:
    """Return the other Python, and what to note of it; `files` are the workloads that it runs.

    One without ci_perf gets this one, by links in `folder`. Raises UsageError.
    """
    side = SidePython(python=str(path.absolute()))
    known, wanted = ask(side), "--base-python: expected"
    version = ".".join(map(str, known.version))
    if known.version[:2] < _OLDEST:
        raise UsageError(f"{wanted} Python {'.'.join(map(str, _OLDEST))} or newer, found {version}")
    if not known.has_torch and "torch" in list_imports(files):
        raise UsageError(f"{wanted} torch, which workloads import, found none in {path}")
    if known.ci_perf not in {"", __version__}:
        raise UsageError(
            f"{wanted} ci_perf {__version__} as here, found {known.ci_perf} in {path}: two "
            "versions measure differently; install this one there, or remove the other one"
        )
    note = f"the base was launched by {path}, Python {version}"
    if known.ci_perf:
        return side, note
    (folder / "ci_perf").symlink_to(child_environment.PACKAGE)
    if not known.has_msgspec:
        if known.version[:2] != sys.version_info[:2]:
            raise UsageError(
                f"{wanted} the package msgspec, which ci_perf needs, found none in {path}; next: "
                f"{path} -m pip install msgspec=={msgspec.__version__}"
            )
        (folder / "msgspec").symlink_to(Path(msgspec.__file__).parent)
    shared = "" if known.has_msgspec else " and its msgspec"
    side = SidePython(python=side.python, packages=(str(folder),))
    return side, f"{note}. It lacks ci_perf, so it used this one{shared}"


def find_other_program(side: SidePython, command: str) -> str:
    """Return a program that a command finds by PATH, and that another Python runs; "" for none."""
    path, python = side.build_environment(os.environ).get("PATH"), Path(side.python)
    ours = f"#!{Path(sys.executable).parent / 'python'}".encode()
    try:
        words = shlex.split(command)
    except ValueError:  # the launch says what is wrong with it
        words = command.split()
    pythons = {word for word in words if re.fullmatch(r"python[\d.]*", word)}
    pythons = pythons or {"python", "python3"}
    for word in sorted({*words, *pythons}):
        program = Path(shutil.which(word, path=path) or "") if "/" not in word else Path()
        if not program.is_file():
            continue
        if word in pythons:
            if program.parent != python.parent or not program.samefile(python):
                return str(program)
        elif program.parent != python.parent and _begins_with(program, ours):
            return str(program)
    return ""


def _begins_with(program: Path, text: bytes) -> bool:
    """Whether a file begins so; one that may only be executed, as sudo, has no such line."""
    try:
        with program.open("rb") as file:
            return file.read(len(text)) == text
    except PermissionError:
        return False


def list_imports(files: Collection[Path]) -> set[str]:
    """Return the first names of all modules that files of Python import."""
    texts = [file.read_text("utf-8", errors="replace") for file in files if file.is_file()]
    return {name for text in texts for name in re.findall(r"(?m)^\s*(?:from|import)\s+(\w+)", text)}


def list_differences(
    base: Installed,
    head: Installed,
    facts: Mapping[str, tuple[str | None, str | None]],
    files: Collection[Path],
) -> tuple[EnvironmentDifference, ...]:
    """Return what differs, the likely causes first, then packages that `files` import.

    `facts` are others than packages, such as Python, each as the base and the head have it.
    """
    modules = {**base.modules, **head.modules}
    imported = {_normalize(modules.get(name, name)) for name in list_imports(files)}
    differences = [
        EnvironmentDifference(name=name, base=before or "", head=after or "")
        for name, (before, after) in {**facts, **dict(_pair_versions(base, head))}.items()
        if before != after
    ]

    def rank(each: EnvironmentDifference) -> tuple[int, str]:
        likely = (
            place
            for place, name in enumerate(_LIKELY)
            if each.name == name or (name.endswith("-") and each.name.startswith(name))
        )
        return next(likely, len(_LIKELY) + (each.name not in imported)), each.name

    return tuple(sorted(differences, key=rank))


def find_version(side: Installed, package: str) -> str:
    """Return the version of a package; "" where a Python has none."""
    return _by_package(side).get(_normalize(package), "")


def _by_package(side: Installed) -> dict[str, str]:
    return {_normalize(name): version for name, version in side.packages.items() if name}


def _pair_versions(base: Installed, head: Installed) -> Iterator[tuple[str, tuple[str, str]]]:
    before, after = _by_package(base), _by_package(head)
    for name in sorted((before.keys() | after.keys()) - _OURS):
        yield name, (before.get(name, ""), after.get(name, ""))


def _normalize(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
