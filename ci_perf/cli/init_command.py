"""`ci-perf init`: the first files in a user's repository. Never touches one that is there."""

from importlib import resources
from pathlib import Path

import click

from ci_perf import files
from ci_perf.cli import output
from ci_perf.errors import CannotWriteError

# Where each file of templates/ goes.
TARGETS = {
    "suite.toml": Path("workloads/suite.toml"),
    "example.py.template": Path("workloads/example.py"),
    "perf.yml": Path(".github/workflows/perf.yml"),
}

NEXT_STEPS = """\
Next:
 1. Try it here:                ci-perf check --suite smoke
    (exit code 3: there is no baseline to compare with yet)
 2. Make workloads/example.py measure a step of your own model.
 3. On the GPU runner, record the first baseline and commit the folder baselines/:
                                ci-perf run --suite standard -o run.json
                                ci-perf accept run.json --reason "first baseline"
 4. Change the lines marked EDIT in .github/workflows/perf.yml.
 5. Results are no part of the repository. Add these lines to .gitignore:
                                run.json
                                report.md
                                comparison.json
                                baseline.patch
                                calibration-run.json
                                qualification-run.json"""


@click.command
@click.option(
    "--directory",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=".",
    show_default=True,
    help="The root of your repository.",
)
def command(directory: Path) -> None:
    """Write a first suite, an example workload and a workflow into this repository.

    A file that exists is named and left as it is.
    """
    kept = [target for target in TARGETS.values() if _exists(directory / target)]
    missing = {name: target for name, target in TARGETS.items() if target not in kept}
    for name, target in missing.items():
        _write(directory / target, _template(name))
    output.emit(_summary(list(missing.values()), kept), output=None)
    _advise(directory)


def _template(name: str) -> str:
    return (resources.files("ci_perf.cli") / "templates" / name).read_text(encoding="utf-8")


def _exists(path: Path) -> bool:
    """Say whether anything has this name; a link that leads nowhere does."""
    return path.exists() or path.is_symlink()


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CannotWriteError(f"{path.parent}: cannot be made: {error.strerror}") from None
    files.write_text(path, text)


def _summary(written: list[Path], kept: list[Path]) -> str:
    lines = [f"wrote  {path}" for path in written]
    lines += [f"kept   {path} (it was there)" for path in kept]
    if not written:
        lines.append("Nothing to write: everything is there.")
    return "\n".join(lines)


def _advise(directory: Path) -> None:
    """Tell the person what follows, and where this folder is not what a CI expects."""
    root = _repository(directory.resolve())
    if root is None:
        output.say(f"warning: {directory.resolve()} is not in a git repository: run `git init`")
    elif root != directory.resolve():
        output.say(f"warning: GitHub reads workflows only from {root / '.github/workflows'}")
    output.say(NEXT_STEPS)


def _repository(folder: Path) -> Path | None:
    return next((f for f in (folder, *folder.parents) if (f / ".git").exists()), None)
