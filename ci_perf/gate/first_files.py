"""Write the first files of a user's repository: a suite, an example workload, two workflows."""

import re
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from ci_perf import suite
from ci_perf.errors import CannotWriteError, UsageError
from ci_perf.system import files

# Where each file of templates/, and each workflow of examples/workflows/, goes.
TARGETS = {
    "suite.toml": Path("workloads/suite.toml"),
    "example.py.template": Path("workloads/example.py"),
    "measure.yml": Path(".github/workflows/perf.yml"),
    "baseline.yml": Path(".github/workflows/perf-baseline.yml"),
}
# What stands in the workflows for the repository and the commit that hold the Action, with the
# comment behind it: without its `#`, the rest of the line would be no YAML.
_PLACEHOLDER = re.compile(r"OWNER/ci_perf@0{40} #.*")
# What is another word in these files for a CPU runner; the labels come first.
_FOR_CPUS = (
    ("[self-hosted, linux, x64, gpu]", "[self-hosted, linux, x64]"),
    ("suite: standard", "suite: smoke"),
    ("device: cuda", "device: cpu"),
    ("your GPU runner", "your runner"),
)
# The first key in suite.toml, and what follows it where packages lie in src.
_FIRST_KEY = "\nschema_version = 1\n"
_PYTHON_PATH = (
    '\npython_path = ["src"] # each side of a check imports its own packages, also if installed\n'
)
# Where the suite for a GPU begins in suite.toml: the last one.
_SUITE_FOR_GPUS = "\n\n\n# ---- standard"
_ACTION = re.compile(r"[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+@[0-9a-f]{40}")


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstFiles:
    """What was written, and what was there and is as it was: paths below the directory.

    ``unnamed`` are those that were there and hold no commit of the Action, though one was given.
    """

    written: tuple[Path, ...]
    kept: tuple[Path, ...]
    unnamed: tuple[Path, ...]


def write(directory: Path, *, action: str | None, device: str) -> FirstFiles:
    """Write the files that `directory` lacks, for runners with a GPU ("cuda") or without ("cpu").

    `action` is the repository and the commit from which the workflows take ci_perf. Raises
    UsageError and CannotWriteError.
    """
    if action is not None and not _ACTION.fullmatch(action):
        raise UsageError(
            f"--action: expected OWNER/REPOSITORY@COMMIT with all 40 digits, found {action!r}"
        )
    kept = [target for target in TARGETS.values() if _exists(directory / target)]
    missing = {name: target for name, target in TARGETS.items() if target not in kept}
    for name, target in missing.items():
        text = _for_device(_template(name), device)
        if any(directory.glob("src/*/__init__.py")):
            text = text.replace(_FIRST_KEY, _FIRST_KEY + _PYTHON_PATH)
        _write(directory / target, _PLACEHOLDER.sub(action, text) if action else text)
    unnamed = [target for target in kept if action and _has_placeholder(directory / target)]
    return FirstFiles(written=tuple(missing.values()), kept=tuple(kept), unnamed=tuple(unnamed))


def repository(folder: Path) -> Path | None:
    """Return the root of the Git repository that a folder lies in."""
    return next((f for f in (folder, *folder.parents) if (f / ".git").exists()), None)


def _template(name: str) -> str:
    if name.endswith(".yml"):
        return (suite.shipped("examples") / "workflows" / name).read_text(encoding="utf-8")
    return (resources.files("ci_perf.gate") / "templates" / name).read_text(encoding="utf-8")


def _for_device(template: str, device: str) -> str:
    """Make what is for a GPU runner fit a CPU runner, if that is the device."""
    if device != "cpu":
        return template
    for word, for_cpus in _FOR_CPUS:
        template = template.replace(word, for_cpus)
    before, has_suite, _ = template.partition(_SUITE_FOR_GPUS)
    return before + "\n" * bool(has_suite)


def _has_placeholder(path: Path) -> bool:
    return path.is_file() and _PLACEHOLDER.search(files.read_text(path)) is not None


def _exists(path: Path) -> bool:
    """Say whether anything has this name; a link that leads nowhere does."""
    return path.exists() or path.is_symlink()


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CannotWriteError(f"{path.parent}: cannot be made: {error.strerror}") from None
    files.write_text(path, text)
