"""Which workload files name changed code: where to look first. No verdict depends on it."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from ci_perf.errors import CiPerfError
from ci_perf.model.suite import PlannedWorkload, find_node
from ci_perf.system import git

# The head of a hunk names the function that it lies in, a line of it another one.
_DEFINED = re.compile(r"^(?:@@.*@@|[+-])[ \t]*(?:async )?(?:def|class) (\w+)", re.MULTILINE)
_WORD = re.compile(r"\w+")


def list_naming_changed(
    workloads: Sequence[PlannedWorkload], root: Path, base: str | None
) -> Iterator[str]:
    """Yield the workloads whose file names a function or class in which `root` differs from a base.

    None where git cannot tell.
    """
    how = ("-U0", "--no-color", "--no-ext-diff", "--no-textconv", "--relative")
    try:
        changes = git.read(root, "diff", *how, base or "HEAD", "--", "*.py")
    except CiPerfError:
        return
    changed = {*_DEFINED.findall(changes.decode(errors="replace"))}
    known: dict[Path, bool] = {}
    for workload in workloads:
        node = find_node(workload.launch, workload.parameters)
        file = root / node.partition("::")[0] if node else Path(workload.file)
        if file not in known:
            known[file] = not changed.isdisjoint(_read_words(file))
        if known[file]:
            yield workload.id


def _read_words(file: Path) -> set[str]:
    try:
        return {*_WORD.findall(file.read_text(encoding="utf-8", errors="replace"))}
    except OSError:
        return set()
