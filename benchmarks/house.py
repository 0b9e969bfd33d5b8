"""How large ci_perf is, and how many files a newcomer reads to follow one value through it.

    python -m benchmarks.house

Prints sizes of files and functions; the files that a value walks through in `check --against` and
in `report`; what `report` imports of the measuring side; and how long `ci-perf --help` takes. A
walk is counted while the command runs in this process: every file of ci_perf outside of model/, in
which a function is called with the value among its arguments, or with an object that holds it. The
base of `check` ends up in the run and in the report: it is counted with these documents, and up to
them. In `report` the value is the document: the artifact, its run and the comparison made of it.
"""

import ast
import contextlib
import dataclasses
import importlib
import io
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from types import FrameType

import msgspec

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "ci_perf"
MEASURING = ("launch", "session", "worktree", "measuring")
BASE = "the-base-of-the-walk"
DEPTH = 3  # how deep in an object a value is looked for
STARTS = 7
SUITE = """
[suites.tiny]
canaries = false
workloads = [{ workload = "sleep" }]

[suites.tiny.protocol]
processes = 3
warmup_min_steps = 1
warmup_min_s = 0
warmup_max_s = 0.1
timed_min_blocks = 3
timed_min_s = 0
timed_max_s = 0.1
block_min_s = 0.001
"""
WORKLOAD = '''
"""Sleeps."""
import time
from ci_perf.workload import Workload
def build(context):
    return Workload(step=lambda: time.sleep(0.001))
'''


@dataclasses.dataclass(frozen=True, slots=True)
class Visit:
    """A call of a function that was given the value, perhaps within a document of model/."""

    file: str
    _: dataclasses.KW_ONLY
    in_document: bool


def main() -> int:
    """Print all figures."""
    print("| figure | value |\n|:--|--:|")
    figures = (sizes(), walks(), imports(), starts())
    for name, value in (figure for group in figures for figure in group):
        print(f"| {name} | {value} |", flush=True)
    return 0


def sizes() -> Iterator[tuple[str, object]]:
    """Count files, lines and functions."""
    sources = [path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")]
    lines = [len(source.splitlines()) for source in sources]
    functions = [
        (node.end_lineno or node.lineno) - node.lineno + 1
        for source in sources
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    yield "files", len(sources)
    yield "lines", sum(lines)
    yield "lines per file: median, longest", f"{statistics.median(lines):.0f}, {max(lines)}"
    yield "functions", len(functions)
    sizes = f"{statistics.median(functions):.0f}, {max(functions)}"
    yield "lines per function: median, longest", sizes


def walks() -> Iterator[tuple[str, object]]:
    """Follow the base through `check --against`, and a stranger's run through `report`."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        check = _walk_of_check(Path(folder))
    with tempfile.TemporaryDirectory() as folder:
        report = _walk_of_report(Path(folder))
    for name, walk in (
        ("check --against", check),
        ("check --against, up to the run", [visit for visit in check if not visit.in_document]),
        ("report", report),
    ):
        files = [visit.file for visit in walk]
        yield f"`{name}`: files that the value walks through", len(set(files))
        yield f"`{name}`: visits of these files", sum(a != b for a, b in pairwise(["", *files]))
        if "-v" in sys.argv:
            print(f"\n{name}", *sorted(set(files)), sep="\n", file=sys.stderr)


def _walk_of_check(folder: Path) -> list[Visit]:
    (folder / "workloads").mkdir()
    (folder / "workloads/suite.toml").write_text(SUITE)
    (folder / "workloads/sleep.py").write_text(WORKLOAD)
    identity = ["-c", "user.name=ci_perf", "-c", "user.email=ci_perf@example.invalid"]
    for words in (
        ["init", "--quiet", f"--initial-branch={BASE}"],
        ["add", "workloads"],
        [*identity, "commit", "--quiet", "--message=One"],
        ["switch", "--quiet", "--create", "head"],
        [*identity, "commit", "--quiet", "--message=Two", "--allow-empty"],
    ):
        subprocess.run(["git", *words], check=True)
    words = ["check", "--suite", "tiny", "--device", "cpu", "--against", BASE, "--wait", "0"]
    return _walk(words, lambda value: value == BASE)


def _walk_of_report(folder: Path) -> list[Visit]:
    # The fake GitHub of the tests; pytest can change variables and folders for a while.
    import pytest

    from ci_perf.model.comparison import Comparison
    from ci_perf.model.run import Run

    fake = importlib.import_module("tests.fakes.github.fake")
    stage = importlib.import_module("tests.integration.github.stage")
    second_stage = importlib.import_module("tests.integration.github.second_stage")
    with fake.FakeGitHub("github.com") as github, pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith(("GITHUB_", "CI_PERF_"))]:
            patch.delenv(name)
        for name, value in fake.DIRECTLY.items():
            patch.setenv(name, value)
        patch.chdir(folder)
        job = stage.Stage(github, folder, patch, None)
        artifact = second_stage.artifact_of(second_stage.slower())
        second_stage.SecondStage(job).measured(artifact=artifact, fork=True)
        job.happens("workflow_run", "completed", run_id=second_stage.RUN, run=900)
        words = ["report", "--run-id", str(second_stage.RUN)]
        text = artifact["run.json"]
        content = text if isinstance(text, bytes) else text.encode()

        def is_artifact(value: object) -> bool:
            if isinstance(value, bytes):
                return value == content or value.startswith(b"PK")
            return isinstance(value, Run | Comparison)

        return _walk(words, is_artifact)


def _walk(words: list[str], is_sought: Callable[[object], bool]) -> list[Visit]:
    """Call the command line; return every call of a function that is given the value."""
    from ci_perf.cli.main import cli

    visits: list[Visit] = []

    def entered(frame: FrameType, event: str, _argument: object) -> None:
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(f"{PACKAGE}/"):
            return
        file = str(Path(code.co_filename).relative_to(PACKAGE))
        if file.startswith("model/"):
            return
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        arguments = [frame.f_locals.get(name) for name in names]
        if any(_holds(argument, is_sought, documents=False) for argument in arguments):
            visits.append(Visit(file, in_document=False))
        elif any(_holds(argument, is_sought, documents=True) for argument in arguments):
            visits.append(Visit(file, in_document=True))

    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        sys.setprofile(entered)
        try:
            cli(words, prog_name="ci-perf", standalone_mode=False)
        finally:
            sys.setprofile(None)
    return visits


def _holds(
    value: object, is_sought: Callable[[object], bool], *, documents: bool, depth: int = DEPTH
) -> bool:
    """Say whether an object is or holds what is sought, in documents of model/ too if wanted."""
    if is_sought(value):
        return True
    if depth == 0 or (isinstance(value, msgspec.Struct) and not documents):
        return False
    return any(
        _holds(part, is_sought, documents=documents, depth=depth - 1) for part in _parts(value)
    )


def _parts(value: object) -> Iterator[object]:
    match value:
        case msgspec.Struct():
            yield from (getattr(value, name) for name in value.__struct_fields__)
        case dict():
            yield from value.values()
        case list() | tuple():
            yield from value
        case type():
            return
        case _ if dataclasses.is_dataclass(value):
            yield from (getattr(value, field.name, None) for field in dataclasses.fields(value))
        case _ if (cells := getattr(value, "__closure__", None)) is not None:
            yield from (cell.cell_contents for cell in cells)
        case _:
            return


def imports() -> Iterator[tuple[str, object]]:
    """Count what the command with the token loads of the side that launches."""
    program = "import sys, ci_perf.cli.pull_request_commands; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True, cwd=ROOT
    ).stdout.split()
    ours = [name for name in loaded if name.startswith("ci_perf.")]
    of_measuring = [name for name in ours if name.split(".")[1] in MEASURING]
    yield "modules of ours that importing `report` loads", len(ours)
    yield f"of these in {', '.join(MEASURING)}", len(of_measuring)


def starts() -> Iterator[tuple[str, object]]:
    """Time `ci-perf --help` against the import of click, alternately."""
    from benchmarks import startup

    programs = {"click": ["-c", "import click"], "help": ["-m", "ci_perf", "--help"]}
    times: dict[str, list[float]] = {name: [] for name in programs}
    for _ in range(STARTS):
        for name, words in programs.items():
            times[name].append(startup.seconds(words))
    ratio = statistics.median(times["help"]) / statistics.median(times["click"])
    yield "start of `ci-perf --help`, times `import click`", f"{ratio:.2f}"


if __name__ == "__main__":
    sys.exit(main())
