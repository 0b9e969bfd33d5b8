"""A project of which a launch is recorded once, and copies of it that are changed."""

import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from ci_perf.launch.local import LocalLauncher
from ci_perf.model.program import Program
from ci_perf.program.tree_sources import FolderTree, GitTree
from ci_perf.same_program import proof
from tests import repositories
from tests.launches import a_task, result_of

# What the workload of every project does with a result: the test can see what it was.
HEAD = """
import json, pathlib
from ci_perf.workload import Workload

def build(context):
    trace = pathlib.Path(context.data_dir) / "trace.json"
    trace.write_text(json.dumps(outcome()))
    return Workload(step=outcome)

"""


class Link(str):
    """The target of a symbolic link, in the place of a text."""

    __slots__ = ()


@dataclass(frozen=True)
class Project:
    """A checkout, and what was recorded of it."""

    root: Path
    data: Path
    program: Program | None = None

    def launched(self, *, environment=None, inside="", foreign=""):
        """Launch the workload, in this folder of the checkout; return the result."""
        root = self.root / inside
        places = {"top": str(self.root), "data_dir": str(self.data), "foreign_root": foreign}
        protocol = {"timeout_s": 120, "monitor_hz": 0}
        file = root / "workloads/it.py"
        task = a_task(file, root=root, protocol=protocol, **places)
        environment = {**os.environ, **(environment or {})}
        return result_of(LocalLauncher(self.root, environment).launch(task))

    def outcome(self):
        """Launch it without recording; return what the workload saw."""
        self.launched()
        return json.loads((self.data / "trace.json").read_text())

    def changed(self, where, changes):
        """Return a copy with some files written, linked or (None) removed, in a new commit."""
        shutil.copytree(self.root, where / "head", symlinks=True)
        (where / "data").mkdir()
        head = Project(where / "head", where / "data", self.program)
        for path, text in changes.items():
            write(head.root / path, text(head.root / path) if callable(text) else text)
        repositories.Repository(head.root).commit()
        return head

    def differences(self):
        """Return what the checkout and the commit differ in from the record."""
        assert self.program is not None
        trees = FolderTree(self.root), GitTree(self.root, "HEAD")
        return [proof.find_difference(self.program, tree) for tree in trees]


def write(path, content):
    """Write a file or a link, in the place of whatever was there; remove it for None."""
    if path.is_symlink() or path.is_file():
        path.unlink()
    elif path.is_dir() and (content is None or isinstance(content, Link)):
        shutil.rmtree(path)
    if content is None:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, Link):
        path.symlink_to(content)
    else:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


def recorded(where, files, *, environment=None, **more):
    """Make a project of these files, and record one launch of it."""
    repository = repositories.init(where / "base")
    (where / "data").mkdir()
    for path, content in files.items():
        write(repository.root / path, content)
    repository.commit()
    project = Project(repository.root, where / "data")
    program = project.launched(environment=environment, **more).program
    return Project(project.root, project.data, program)


def replaced(old, new):
    """Return the change of a file's text that puts `new` in the place of `old`."""

    def change(path):
        text = path.read_text()
        assert old in text
        return text.replace(old, new)

    return change
