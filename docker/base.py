"""What the build of an image asks of its base: Python, torch, compilers. Runs in the build only.

`note` comes first and remembers the base's torch; `compilers` proves that there are some that work;
`torch` that torch is still the base's and fits what was installed beside it; `imports` that all is
there at the end.
"""

import importlib.util
import json
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from packaging.requirements import Requirement

NOTES = Path(__file__).with_name("base.json")
OLDEST_PYTHON = (3, 11)
# What a worker imports, and what the workloads that come with ci-perf import.
NEEDED = ("torch", "transformers", "msgspec", "numpy", "pynvml", "ci_perf")


def note() -> None:
    """Refuse a base that cannot work, and write down what it is."""
    if sys.version_info < OLDEST_PYTHON:
        _refuse(f"expected Python >= 3.11 as python3, found {sys.version.split()[0]}")
    if importlib.util.find_spec("pip") is None:
        _refuse(f"expected pip, found none in {sys.executable}")
    if importlib.util.find_spec("torch") is None:
        _refuse(f"expected torch, found none in {sys.executable}")
    NOTES.write_text(json.dumps({"torch": _torch(), "installed": _installed()}) + "\n")


def compilers() -> None:
    """Compile an empty program of each language, with Python's own header in it."""
    for compiler, language in (("gcc", "c"), ("g++", "c++")):
        if (why := _failure(compiler, language)) is not None:
            _refuse(f"expected a {compiler} that compiles for Python, found {why}")


def torch() -> None:
    """Refuse an image whose torch is not the base's, or does not fit its neighbours."""
    before = json.loads(NOTES.read_text())
    if (after := _torch()) != before["torch"]:
        _refuse(
            f"expected to keep its torch, {before['torch']}, found {after}: the lock names torch, "
            "and must not (docker/no-torch.txt leaves it out)"
        )
    if conflicts := _conflicts(before["installed"]):
        _refuse(f"expected a lock that fits its torch, found: {'; '.join(conflicts)}")


def imports() -> None:
    """Refuse an image in which something that is needed cannot be imported."""
    for name in NEEDED:
        importlib.import_module(name)
    if shutil.which("ci-perf") is None:
        _refuse("expected ci-perf on the PATH, found that pip installs programs elsewhere")


def _refuse(why: str) -> NoReturn:
    sys.exit(f"base image: {why}")


def _torch() -> str:
    import torch

    return f"{torch.__version__} (CUDA {torch.version.cuda}) in {torch.__file__}"


def _failure(compiler: str, language: str) -> str | None:
    """Return why a compiler cannot make an extension of this Python."""
    if shutil.which(compiler) is None:
        return "none on the PATH"
    headers = sysconfig.get_path("include")
    done = subprocess.run(
        [compiler, "-fsyntax-only", f"-I{headers}", "-x", language, "-"],
        input="#include <Python.h>\n",
        capture_output=True,
        text=True,
        check=False,
    )
    return None if done.returncode == 0 else f"that it says: {done.stderr.strip()}"


def _installed() -> dict[str, str]:
    return {_canonical(one.name): one.version for one in metadata.distributions()}


def _conflicts(before: dict[str, str]) -> list[str]:
    """Name what does not fit between torch and what the lock has changed, and nothing else.

    A base may hold packages that fit badly, and nobody minds: that is its affair.
    """
    now = _installed()
    changed = {name for name, version in now.items() if before.get(name) != version}
    return [
        f"{name} {now[name]} needs {requirement}, found {now[wanted]}"
        for name, wanted, requirement in _requirements()
        if (name in changed and wanted == "torch") or (name == "torch" and wanted in changed)
        if wanted in now and not requirement.specifier.contains(now[wanted], prereleases=True)
    ]


def _requirements() -> Iterator[tuple[str, str, "Requirement"]]:
    """Yield who needs whom, and how; of extras only ci-perf's `measure`."""
    from packaging.requirements import Requirement  # the lock has brought it by now

    for one in metadata.distributions():
        for requirement in map(Requirement, one.requires or ()):
            extra = "measure" if one.name == "ci-perf" else ""
            if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
                yield _canonical(one.name), _canonical(requirement.name), requirement


def _canonical(name: str) -> str:
    """Spell the name of a package as one way of many: PEP 503."""
    return re.sub(r"[-_.]+", "-", name).lower()


if __name__ == "__main__":
    {"note": note, "compilers": compilers, "torch": torch, "imports": imports}[sys.argv[1]]()
