"""Compile every file, then run tests that need no compiled package: the side of pyodide."""

import re
import sys
import warnings
from pathlib import Path

import pytest

FOLDERS = ("benchmarks", "ci_perf", "docker", "examples", "tests", "workloads")
# What an import says of a compiled package that was built for another machine, or is not there.
OF_ANOTHER_MACHINE = re.compile(
    r"dynamic module does not define module export function|need to see wasm magic number"
    r"|No module named '(numpy|pandas|rpds|scipy|torch)\b"
)


class LeaveOut:
    """Leaves out the files of tests that import a compiled package."""

    def __init__(self):
        self.files = []

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self, collector):
        report = yield
        if report.failed and OF_ANOTHER_MACHINE.search(str(report.longrepr)):
            self.files.append(collector.name)
            report.outcome = "skipped"
            report.longrepr = (str(collector.path), 0, "Skipped: needs a compiled package")
        return report


def main(tests):
    """Return the exit code of pytest; a warning of the compiler is an error."""
    compiled = compile_all()
    print(f"Python {sys.version.split()[0]}: {compiled} files compile without a warning")  # noqa: T201
    left_out = LeaveOut()
    options = ["-q", "--timeout=0", "-p", "no:cacheprovider", "-p", "no:xdist"]
    code = pytest.main([*options, *tests], [left_out])
    print(f"left out for want of compiled packages: {', '.join(left_out.files)}")  # noqa: T201
    return int(code)


def compile_all():
    """Compile every file of ours; return how many there are."""
    found = [path for folder in FOLDERS for path in Path(folder).rglob("*.py")]
    ours = [path for path in found if "node_modules" not in path.parts]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for path in ours:
            compile(path.read_bytes(), str(path), "exec")
    return len(ours)
