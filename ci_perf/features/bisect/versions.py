"""Bisect over versions of a package: each in a folder of its own, all beside one commit."""

import contextlib
import dataclasses
import os
import re
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ci_perf import worktree
from ci_perf.api_types import Notify
from ci_perf.errors import CiPerfError, UsageError
from ci_perf.features.bisect.answers import Answers
from ci_perf.features.bisect.bisect import Bisecting, find_workload
from ci_perf.features.bisect.bisection import Bisection
from ci_perf.features.bisect.sessions import BisectSessions
from ci_perf.gate import runners
from ci_perf.gate.commit_pairs import PairsJudge
from ci_perf.gate.commits import CommitLine, CommitPrograms
from ci_perf.gate.options import MeasureOptions
from ci_perf.launch import child_environment, side_python
from ci_perf.launch.local import LocalLauncher
from ci_perf.launch.side_python import SidePython
from ci_perf.model.commit import Commit
from ci_perf.model.run import Run
from ci_perf.model.task import MachineDescription
from ci_perf.program.tree_sources import GitTree
from ci_perf.program.trees import Tree
from ci_perf.session import Listener
from ci_perf.system import git, scratch, signals
from ci_perf.system.git_log import LineCommit
from ci_perf.worktree import merge_base

_SETUP_S = 3600.0
_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+!_-]*")


def search_versions(
    measuring: MeasureOptions,
    over: str,
    setup: str,
    *,
    metric: str,
    notify: Notify,
    listener: Callable[[], Listener],
    sessions: "type[VersionSessions] | None" = None,
) -> Bisection:
    """Find the version that made a workload worse; `over` is NAME=V1,V2,…, from good to bad.

    Raises and ends as `bisect.search` does.
    """
    package, versions = _read_versions(over)
    if not ("{folder}" in setup and "{version}" in setup):
        raise UsageError(
            f"--setup: expected a command with {{folder}} and {{version}}, found {_hide(setup)!r}; "
            f"for example 'uv pip install --target {{folder}} {package}=={{version}}'"
        )
    if measuring.runner.kind != runners.LOCAL:
        raise UsageError(f"--over: expected --runner local, found {measuring.runner.kind}")
    root = measuring.root
    programs = VersionPrograms(
        CommitLine(
            start=merge_base.exactly(root, "HEAD"),
            commits=tuple(
                LineCommit(commit=Commit(id=each, author="", date="", title=""), parents=())
                for each in versions
            ),
        ),
        measuring,
        notify,
    )
    workload, has_setup = find_workload(programs, measuring.select, "HEAD")
    with signals.note_signals() as ending, contextlib.ExitStack() as stack:
        base = stack.enter_context(worktree.commit_of(root, "HEAD", has_setup=has_setup))
        folder = stack.enter_context(scratch.folder()).path
        launching = (sessions or VersionSessions)(
            measuring, base, ending, notify, listener, workload=workload
        ).over(package, versions[0], setup, folder)
        answers = Answers(programs, workload)
        ends = versions[0], versions[-1]
        search = Bisecting(
            measuring, *ends, metric, answers, launching, notify, ending, noun="version"
        )
        return msgspec.structs.replace(search.go(), over=package, setup=_hide(setup))


def _read_versions(over: str) -> tuple[str, Sequence[str]]:
    package, _, listed = over.partition("=")
    versions = listed.split(",")
    is_valid = all(map(_VERSION.fullmatch, [package, *versions]))
    if not is_valid or not 1 < len(versions) == len(set(versions)):
        raise UsageError(
            "--over: expected a package and two or more different versions, the good one first, "
            f"such as torch=2.11,2.12,2.13, found {over!r}"
        )
    return package, versions


class VersionPrograms(CommitPrograms):
    """One commit at every place of the line: no record tells its versions apart."""

    def is_same(
        self, recorded: int, position: int, workload: str, machine: MachineDescription
    ) -> bool:
        """Return False: no record tells."""
        del recorded, position, workload, machine
        return False

    def _tree(self, position: int) -> Tree:
        del position
        start = self.line.start
        return GitTree(start.top, start.commit, prefix=start.inside.as_posix().removeprefix("."))


class VersionSessions(BisectSessions):
    """Launches one commit on both sides, each with the packages of its version."""

    def over(self, package: str, good: str, setup: str, folder: Path) -> "VersionSessions":
        """Take the known-good version, and how a folder below `folder` gets the packages of one."""
        self._package, self._good, self._setup, self._folder = package, good, setup, folder
        self._prepared: dict[str, str] = {}
        return self

    def _launch(self, commit: str, judge: PairsJudge, against: str) -> Run:
        before, after = self._prepare(against or self._good), self._prepare(commit)
        self._options = dataclasses.replace(self._options, packages=(after,))
        base = dataclasses.replace(self._base, python=SidePython(packages=(before,)))
        return self.run("HEAD", base, judge, budget_s=self.left_s)

    def _prepare(self, version: str) -> str:
        """Return the folder of a version, which its setup fills once. Raises CiPerfError."""
        if version in self._prepared:
            return self._prepared[version]
        # Of one length each, as the paths of modules are.
        folder = self._folder / f"{len(self._prepared):04}"
        folder.mkdir()
        words = {"{folder}": shlex.quote(str(folder)), "{version}": version}
        command = re.sub(r"\{folder\}|\{version\}", lambda match: words[match[0]], self._setup)
        shown = _hide(command)
        self._notify(f"setup of {version}: {shown}")
        given: dict[str, Any] = {"timeout_s": _SETUP_S, "interrupted": self._ending.have_come}
        root = git.find_top(self._options.root)
        ended = LocalLauncher(root).shell(command, root=root, variables={}, **given)
        if ended.timed_out or ended.code != 0 or not any(folder.iterdir()):
            raise CiPerfError(
                f"setup of {version}: expected `{shown}` to end with code 0 and to fill the "
                f"folder, found code {ended.code}; see its output",
                output=_hide(ended.tail),
            )
        side = SidePython(packages=(str(folder),))
        installed = side_python.find_version(side_python.ask(side), self._package)
        if not is_version(installed, version):
            raise CiPerfError(
                f"setup of {version}: expected it to install {self._package} {version}, found "
                f"{installed or 'none'}; next: use {{version}} in --setup",
                output=_hide(ended.tail),
            )
        self._prepared[version] = str(folder)
        return str(folder)


def _hide(text: str) -> str:
    return child_environment.hide_credentials(text, os.environ)


def is_version(installed: str, asked: str) -> bool:
    """Whether `==asked` of pip installs it: 2.12 is 2.12.0, also of a build, such as 2.12.0+cpu."""
    public = installed if "+" in asked else installed.partition("+")[0]
    return re.sub(r"(\.0)+$", "", public) == re.sub(r"(\.0)+$", "", asked)
