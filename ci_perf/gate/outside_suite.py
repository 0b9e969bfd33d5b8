"""A suite in a folder of its own, outside of the repository: base and head follow the same."""

import contextlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ci_perf.system import scratch

# Files that git does not know are the head's alone; a package in src/ is found on both sides.
_PYTHON_PATH = "src"


def find_python_path(root: Path) -> list[str]:
    """Return the folders of a repository that such a suite adds to the path of imports."""
    return [_PYTHON_PATH] if (root / _PYTHON_PATH).is_dir() else []


@contextlib.contextmanager
def open_outside_suite(
    name: str,
    text: str,
    options: Mapping[str, Any],
    *,
    root: Path,
    setup: str,
    files: Mapping[str, str] | None = None,
) -> Iterator[Mapping[str, Any]]:
    """Provide options of a measurement with the suite of these tables, within.

    `name` is one of `OUTSIDE_SUITES`, `text` the tables of its suite.toml, `setup` the command that
    makes a side ready, empty for none, and `files` are its workload files.
    """
    with scratch.folder() as temporary:  # which the next run sweeps
        folder = temporary.path
        for file, source in (files or {}).items():
            (folder / file).write_text(source, encoding="utf-8")
        lines = ["schema_version = 1", f"python_path = {quote(find_python_path(root))}"]
        lines += [f"setup = {{ command = {quote(setup)} }}"] if setup else []
        whole = "\n".join([*lines, text])
        (folder / "suite.toml").write_text(whole, encoding="utf-8")
        yield {
            **options,
            "suite": name,
            "workloads": folder,
            "baselines": folder / "baselines",
            "all_workloads": True,
        }


def quote(value: str | list[str]) -> str:
    """Spell a text, or several, for TOML, whose basic strings are those of JSON."""
    return json.dumps(value, ensure_ascii=False)
