"""What of a repository any workload may depend on, although no record names it."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from ci_perf.errors import CiPerfError
from ci_perf.model.suite import Plan
from ci_perf.program.trees import matches_pattern
from ci_perf.system import git
from ci_perf.worktree import sources
from ci_perf.worktree.merge_base import Start

# Of a large tree on a slow disk.
_ANSWER_S = 300.0
_SUBMODULE = "160000"
# What a step of a workflow runs: the files that they name count as named by the workflow.
_SCRIPTS = (
    *("*.bash", "*.fish", "*.ksh", "*.mk", "*.ps1", "*.sh", "*.zsh", "action.y*ml", "gnumakefile"),
    *("justfile", "makefile", "noxfile.py", "taskfile*", "tasks.py", "tox.ini", "tox.toml"),
)
# What is run although nobody names it.
_UNNAMED = (
    *("__*__.py", "build.py", "noxfile.py", "sitecustomize.py", "tasks.py", "usercustomize.py"),
)
# What may import a module: Python, and a script without an ending.
_RUN_BY_NAME = ("", ".py")
_WORD = re.compile(r"\w+")
# What no program builds or runs.
_DOCUMENTS = ("*.md", "*.rst", "LICENSE")


@dataclass(frozen=True, slots=True)
class WorkflowText:
    """The whole text of what says how a commit is built and measured."""

    text: str

    def name(self, word: str) -> bool:
        """Whether a word, such as a variable, occurs anywhere in it."""
        return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", self.text) is not None


def read_workflows(start: Start) -> WorkflowText:
    """Read workflows, scripts, and what else says what is installed. Raises CiPerfError."""
    scripts = (f":(top,icase,glob)**/{name}" for name in _SCRIPTS)
    how = ("-h", "-I", "-F", "-e", "", "HEAD", "--", *sources.ASKING, *scripts)
    answer = git.run(start.top, "grep", *how, timeout_s=_ANSWER_S)
    if answer.code > 1:
        raise CiPerfError("`git grep` failed; see its output", output=answer.err)
    return WorkflowText(answer.out)


def find_difference(start: Start, plan: Plan, workflows: WorkflowText) -> str:
    """Say which file differs that any workload may depend on; "" where none does.

    The checkout is the head, without changes of its own. Raises CiPerfError.
    """
    return next(_find_differences(start, plan, workflows), "")


def _find_differences(start: Start, plan: Plan, workflows: WorkflowText) -> Iterator[str]:
    changed = _list_changed(start)
    words = _find_words(start, workflows)
    yield from (f"the submodule {path} differs" for path in changed if _SUBMODULE in changed[path])
    for file in sources.list_dependencies(start):
        yield f"{file} differs, which may change what is installed"
    for path in map(PurePosixPath, changed):
        if any(matches_pattern(path.name, document) for document in _DOCUMENTS):
            continue
        if plan.setup.command:
            yield f"{path} differs, and `setup` may read it"
        elif path.suffix != ".py":
            yield f"{path} differs, which is neither a document nor Python code"
        elif any(matches_pattern(path.name, name) for name in _UNNAMED):
            yield f"{path} differs, which may run although nobody names it"
        elif words.issuperset(_split_name(path)):
            yield f"{path} differs, and a workflow, or what it runs, names it"


def _find_words(start: Start, workflows: WorkflowText) -> set[str]:
    """Return the words of the workflows, of each script that one of these words names, and so on.

    Without a change of these scripts, those of the base name the same. Raises CiPerfError.
    """
    words = set(_WORD.findall(workflows.text))
    listed = git.read(start.top, "ls-files", "-z", timeout_s=_ANSWER_S)
    left = {PurePosixPath(os.fsdecode(path)) for path in listed.split(b"\0")[:-1]}
    left = {path for path in left if path.suffix in _RUN_BY_NAME and (start.top / path).is_file()}
    while named := {path for path in left if words.issuperset(_split_name(path))}:
        left -= named
        for path in named:
            file = start.top / path
            target = file.readlink() if file.is_symlink() else ""
            words.update(_WORD.findall(f"{target} {file.read_text('utf-8', errors='ignore')}"))
    return words


def _split_name(path: PurePosixPath) -> list[str]:
    """Return by which words a script names another one: a package is named by its folder."""
    return _WORD.findall(path.parent.name if path.stem.startswith("__") else path.stem)


def _list_changed(start: Start) -> dict[str, str]:
    """Return the paths in which both commits differ, each with its modes."""
    how = ("--raw", "-r", "-z", "--no-renames", "--ignore-submodules=none")
    said = git.read(start.top, "diff-tree", *how, start.commit, "HEAD", timeout_s=_ANSWER_S)
    parts = said.decode(errors="replace").split("\0")[:-1]
    return dict(zip(parts[1::2], parts[::2], strict=True))
