"""How many functions and modules of ci_perf a check and a report enter, beside the workers.

    python -m benchmarks.flow

Counts with `sys.setprofile`, in the main thread: `ci-perf check --against main --all` of one
workload of which a comment has changed, and `ci-perf github report` of a run of a pull request, on
the server of tests that speaks GitHub's API. What a person reads to change one of them is about
that large. Bodies of classes and modules run at import and are no functions: they do not count. The
exit code is 1 where one is larger than `MOST`.
"""

import contextlib
import inspect
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from benchmarks.repositories import Repository
from benchmarks.unchanged_checks import PRODUCT

ROOT = Path(__file__).parents[1]
PACKAGE = str(ROOT / "ci_perf") + os.sep
# Functions and modules, at most.
MOST = {"check": (850, 100), "report": (350, 45)}
REPORT = "tests/integration/github/test_report.py::test_a_pull_request_without_news_ends_well"


@contextlib.contextmanager
def count_entered(entered: set[tuple[str, str, int]]) -> Iterator[None]:
    """Note each function of ci_perf that is entered: file, name and line."""

    def note(frame: FrameType, event: str, _argument: object) -> None:
        code = frame.f_code
        is_function = code.co_flags & inspect.CO_OPTIMIZED and code.co_name[0] != "<"
        if event == "call" and is_function and code.co_filename.startswith(PACKAGE):
            entered.add((code.co_filename, code.co_qualname, code.co_firstlineno))

    sys.setprofile(note)
    try:
        yield
    finally:
        sys.setprofile(None)


def call_cli() -> None:
    """Run the command line of this process, and print on stderr what it entered."""
    from ci_perf.cli.main import cli

    entered: set[tuple[str, str, int]] = set()
    with count_entered(entered), contextlib.suppress(SystemExit):
        cli(prog_name="ci-perf", standalone_mode=False)
    for file, name, line in sorted(entered):
        print("entered", file.removeprefix(PACKAGE), name, line, file=sys.stderr)


def check() -> set[tuple[str, str]]:
    """Check a branch that changes a comment, and return which functions of which modules."""
    with tempfile.TemporaryDirectory() as folder:
        repository = Repository(Path(folder))
        repository.write(PRODUCT)
        repository.commit()
        repository.git("checkout", "--quiet", "-b", "branch")
        file = repository.root / "workloads/product.py"
        file.write_text(file.read_text() + "# Another comment.\n")
        repository.commit()
        said = repository.run(
            *(sys.executable, "-m", "benchmarks.flow", "check", "--against", "main", "--all"),
            *("--wait", "1s"),  # and however long another check of this machine takes
        )
    rows = [line.split() for line in said.splitlines() if line.startswith("entered ")]
    return {(module, f"{name}:{line}") for _, module, name, line in rows}


class _Reports:
    """Counts while a command of a job runs, in a test of pytest."""

    def __init__(self) -> None:
        self.entered: set[tuple[str, str, int]] = set()

    def pytest_collection_finish(self) -> None:
        """Have the command line count from now on."""
        from ci_perf.cli.main import cli

        call = cli.main

        def counted(*arguments: Any, **options: Any) -> Any:  # noqa: ANN401  as click's
            with count_entered(self.entered):
                return call(*arguments, **options)

        vars(cli)["main"] = counted


def report() -> set[tuple[str, str]]:
    """Report a run of a pull request, and return which functions of which modules."""
    reports = _Reports()
    with contextlib.redirect_stdout(sys.stderr):
        code = pytest.main(["-q", "-p", "no:cacheprovider", REPORT], plugins=[reports])
    if code:
        raise SystemExit(f"{REPORT}: expected it to pass, found exit code {code}")
    return {(file.removeprefix(PACKAGE), f"{name}:{line}") for file, name, line in reports.entered}


def main() -> int:
    """Print both counts."""
    is_larger = False
    for name, enter in (("check", check), ("report", report)):
        entered = enter()
        modules = {module for module, _ in entered}
        functions, most = len(entered), MOST[name]
        print(f"{name}: {functions} functions of {len(modules)} modules; at most {most}")
        is_larger = is_larger or functions > most[0] or len(modules) > most[1]
    return int(is_larger)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        call_cli()
    else:
        sys.exit(main())
