"""`ci-perf init`: the first files in a user's repository. Never touches one that is there."""

import re
from importlib import resources
from pathlib import Path

import click

from ci_perf import suite
from ci_perf.cli import console
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
# What is another word in the workflows for a CPU runner; the labels come first.
_FOR_CPUS = (
    ("[self-hosted, linux, x64, gpu]", "[self-hosted, linux, x64]"),
    ("suite: standard", "suite: smoke"),
    ("device: cuda", "device: cpu"),
)
_ACTION = re.compile(r"[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+@[0-9a-f]{40}")

NEXT_STEPS = """\
Next:
 1. Put a step of your own model into workloads/example.py, and try it:
                                ci-perf run --suite smoke
 2. Results are no part of the repository. Add these lines to .gitignore:
                                run.json
                                report.md
                                comparison.json
                                baseline.patch
                                calibration-run.json
                                qualification-run.json
 3. Change the lines marked EDIT in .github/workflows/. Commit everything to your main branch.
 4. On GitHub: Actions, perf-baseline, Run workflow. Your runner measures the main branch and
    opens a pull request with the first baselines. Merge it.
 5. Open a pull request: perf measures it, and a comment says whether it is slower.
Without GitHub, after step 2:   ci-perf accept run.json --reason "First baseline"
                                git add workloads baselines && git commit
on a branch:                    ci-perf check --suite smoke --against main"""


@click.command
@click.option(
    "--directory",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=".",
    show_default=True,
    help="The root of your repository.",
)
@click.option(
    "--action",
    metavar="OWNER/REPOSITORY@COMMIT",
    help="The repository and the commit (40 digits) from which the workflows take ci_perf.",
)
@click.option(
    "--device",
    type=click.Choice(["cuda", "cpu"]),
    default="cuda",
    show_default=True,
    help="What the workflows measure on: a runner with a GPU, or with a CPU alone.",
)
def command(directory: Path, action: str | None, device: str) -> None:
    """Write a first suite, an example workload and two workflows into this repository.

    A file that exists is named and left as it is.
    """
    if action is not None and not _ACTION.fullmatch(action):
        raise UsageError(
            f"--action: expected OWNER/REPOSITORY@COMMIT with all 40 digits, found {action!r}"
        )
    kept = [target for target in TARGETS.values() if _exists(directory / target)]
    missing = {name: target for name, target in TARGETS.items() if target not in kept}
    for name, target in missing.items():
        text = _for_device(_template(name), device) if target.suffix == ".yml" else _template(name)
        _write(directory / target, _PLACEHOLDER.sub(action, text) if action else text)
    console.emit(_summary(list(missing.values()), kept), output=None)
    for target in kept if action else ():
        _warn_of_placeholder(directory / target, action)
    _advise(directory)


def _template(name: str) -> str:
    if name.endswith(".yml"):
        return (suite.shipped("examples") / "workflows" / name).read_text(encoding="utf-8")
    return (resources.files("ci_perf.cli") / "templates" / name).read_text(encoding="utf-8")


def _for_device(workflow: str, device: str) -> str:
    """Make the workflow for a GPU runner one for a CPU runner, if that is the device."""
    for word, for_cpus in _FOR_CPUS if device == "cpu" else ():
        workflow = workflow.replace(word, for_cpus)
    return workflow


def _warn_of_placeholder(path: Path, action: str | None) -> None:
    """Say that a file which was there does not name the Action, as --action asks."""
    if path.is_file() and _PLACEHOLDER.search(files.read_text(path)):
        console.say(
            f"warning: {path} was left as it is, with OWNER/ci_perf@000… in it: put {action} there"
        )


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
        console.say(f"warning: {directory.resolve()} is not in a git repository: run `git init`")
    elif root != directory.resolve():
        console.say(f"warning: GitHub reads workflows only from {root / '.github/workflows'}")
    console.say(NEXT_STEPS)


def _repository(folder: Path) -> Path | None:
    return next((f for f in (folder, *folder.parents) if (f / ".git").exists()), None)
