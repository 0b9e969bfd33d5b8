"""What of a repository any workload may depend on, although no record names it."""

import itertools
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
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
# Workflows of other services, and what a step may run or build by without its name: what they name
# counts as named by a workflow.
_SCRIPTS = (
    *(".*.y*ml", ".*/**/*.y*ml", "*.*sh", "*.bzl", "*.cmake", "*.mk", "*.ps1", "*pipelines.y*ml"),
    *("action.y*ml", "build.bazel", "build.rs", "cmakelists.txt", "gnumakefile", "justfile"),
    *("makefile", "meson.build", "noxfile.py", "taskfile*", "tasks.py", "tox.ini", "tox.toml"),
)
# What is run although nobody names it.
_UNNAMED = (
    *("__*__.py", "build.py", "noxfile.py", "sitecustomize.py", "tasks.py", "usercustomize.py"),
)
# No script is as large.
_MOST_BYTES = 10**7
_WORD = re.compile(r"\w+")
# What a glob reaches, what an expression, a shell or Python fills in, and what both stand in.
_GLOB = re.compile(r"\[[^][\n*/]{,99}\]|\*\*/|[*?]+")
_FILLED = re.compile(r"\$?\{{1,2}[^{}\n]{,99}\}{1,2}|\$\([^()\n]{,99}\)|\$[\w@]+|%s")
_QUOTE = re.compile(r"((?<![\w$/])f)?[\"']")
_PATTERN = re.compile(r"[\w./*?-]+")
_LOOP = re.compile(r"\bfor\s+\w+\s+in\s([^;\n]+)[;\s]+do\b")
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
    names = _find_names(start, workflows)
    yield from (f"the submodule {path} differs" for path in changed if _SUBMODULE in changed[path])
    for file in sources.list_dependencies(start):
        yield f"{file} differs, which may change what is installed"
    for path in map(PurePosixPath, changed):
        if _is_document(path):
            continue
        if plan.setup.command:
            yield f"{path} differs, and `setup` may read it"
        elif path.suffix != ".py":
            yield f"{path} differs, which is neither a document nor Python code"
        elif any(matches_pattern(path.name, name) for name in _UNNAMED):
            yield f"{path} differs, which may run although nobody names it"
        elif path in names:
            yield f"{path} differs, and a workflow, or what it runs, names it"


@dataclass(frozen=True, slots=True)
class _Names:
    """What texts name: by its words, or by a pattern such as `scripts/*.py`."""

    words: set[str] = field(default_factory=set)
    patterns: set[str] = field(default_factory=set)

    def __contains__(self, path: PurePosixPath) -> bool:
        return self.words.issuperset(_split_name(path)) or any(
            fnmatchcase(f"/{path}", f"*{pattern}") for pattern in self.patterns
        )

    def read(self, text: str) -> None:
        """Add what a text names. A name that is only filled in stands elsewhere, as words."""
        self.words.update(_WORD.findall(text))
        globs = _GLOB.sub("*", _QUOTE.sub("", text))
        for lines in (globs, _FILLED.sub("?", globs)):
            for before, part in itertools.pairwise(["", *_PATTERN.findall(lines)]):
                path = f"{part.replace('.', '/')}.py" if before == "-m" else part.lstrip("./")
                is_open = "*" in path or ("?" in path and _WORD.search(path[:-3]))
                if is_open and path.endswith(".py"):
                    self.patterns.add(path.replace("?", "*"))
            for part in _PATTERN.findall(" ".join(_LOOP.findall(lines))):
                if "*" in part:
                    self.patterns.add(part.lstrip("./").replace("?", "*"))


def _find_names(start: Start, workflows: WorkflowText) -> _Names:
    """Return what the workflows name, each file that they name, and so on.

    Without a change of these files, those of the base name the same. Raises CiPerfError.
    """
    names = _Names()
    names.read(workflows.text)
    listed = git.read(start.top, "ls-files", "-z", timeout_s=_ANSWER_S)
    left = {PurePosixPath(os.fsdecode(path)) for path in listed.split(b"\0")[:-1]}
    if absent := [path for path in left if not os.path.lexists(start.top / path)]:
        raise CiPerfError(f"{absent[0]} is not checked out")
    left = {path for path in left if not _is_document(path) and (start.top / path).is_file()}
    left = {path for path in left if (start.top / path).stat().st_size <= _MOST_BYTES}
    while named := {path for path in left if path in names}:
        left -= named
        for path in named:
            file = start.top / path
            target = file.readlink() if file.is_symlink() else ""
            names.read(f"{target} {file.read_text('utf-8', errors='ignore')}")
    return names


def _is_document(path: PurePosixPath) -> bool:
    return any(matches_pattern(path.name, document) for document in _DOCUMENTS)


def _split_name(path: PurePosixPath) -> list[str]:
    """Return by which words a script names another one: a package is named by its folder."""
    return _WORD.findall(path.parent.name if path.stem.startswith("__") else path.stem)


def _list_changed(start: Start) -> dict[str, str]:
    """Return the paths in which both commits differ, each with its modes."""
    how = ("--raw", "-r", "-z", "--no-renames", "--ignore-submodules=none")
    said = git.read(start.top, "diff-tree", *how, start.commit, "HEAD", timeout_s=_ANSWER_S)
    parts = said.decode(errors="replace").split("\0")[:-1]
    return dict(zip(parts[1::2], parts[::2], strict=True))
