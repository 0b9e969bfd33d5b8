"""Record what a program takes from its repository, from before torch is imported to its last step.

A recording launch is never timed. What cannot be known is an obstacle in the record, and never an
error of the launch.
"""

import contextlib
import dataclasses
import itertools
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from ci_perf.measuring import shared_code
from ci_perf.measuring.recording import executed, native, patched
from ci_perf.measuring.recording.assembling import Assembly
from ci_perf.measuring.recording.audited import Audit
from ci_perf.measuring.recording.contents import Contents
from ci_perf.measuring.recording.executed import Executed
from ci_perf.measuring.recording.notes import Fact, Notes
from ci_perf.measuring.recording.patched import Searches
from ci_perf.measuring.recording.places import Owner, Places, absolute
from ci_perf.model.program import Program, nothing_recorded
from ci_perf.model.task import Task
from ci_perf.system import files
from ci_perf.workload import Workload

_FACTS = "facts.jsonl"
# How long the last steps may take: so many times as long as the timed region, or this many seconds.
# On a busy machine the same steps may take many times a short timed region.
_TIMED_REGIONS = 3.0
_LEAST_S = 10.0

Clock = Callable[[], float]


class Steps:
    """Counts the steps of a workload."""

    def __init__(
        self,
        wanted: int,
        after_each: Callable[[], None] = lambda: None,
        clock: Clock = time.monotonic,
    ) -> None:
        """Want so many of them."""
        self.count = 0
        self.obstacle = ""
        self._wanted = wanted
        self._after_each = after_each
        self._clock = clock

    def counted(self, workload: Workload) -> Workload:
        """Return the workload, whose steps will be counted."""
        step = workload.step

        def counting() -> object:
            self.count += 1
            result = step()
            self._after_each()
            return result

        return dataclasses.replace(workload, step=counting)

    def longest_s(self, timed_s: float) -> float:
        """Return how long further steps may take, by how long the timed region took."""
        return max(_LEAST_S, _TIMED_REGIONS * timed_s)

    def go_on(
        self, step: Callable[[], object], may_take_s: float, slowest: Callable[[float], float]
    ) -> None:
        """Run steps until there are enough, for `may_take_s` at most.

        `slowest` returns the largest of what all ranks give it: they have to stop together.
        """
        end = self._clock() + may_take_s
        while self.count < self._wanted:
            if slowest(float(self._clock() > end)):
                self.obstacle = f"recording was cut after {self.count} of {self._wanted} steps"
                return
            step()


class Recording:
    """One recording: begun when it is made."""

    def __init__(self, todo: Task, folder: Path) -> None:
        """Begin to record. Raises OSError."""
        self._todo = todo
        self._places = Places(todo.root, str(folder), top=todo.top, foreign=todo.foreign_root)
        self._notes = Notes(folder / _FACTS)
        self._contents = Contents(self._notes, self._places)
        self._executed = Executed(self._notes, self._places)
        self._searches = Searches(self._notes, self._places)
        self._opened: set[str] = set()
        self._watch = self._watch_kernel(folder)
        self._audit = Audit(
            self._notes,
            self._contents,
            executes=self._executed.note,
            searches_metadata=lambda path: self._searches.note([path], patched.METADATA),
            is_installed=self._places.is_installed,
            is_profiled=not executed.TOLD_ONCE,
            drain=self.drain,
        )
        self._end = self._begin()

    def drain(self) -> None:
        """Take what the kernel has told so far: it keeps some thousand events."""
        if self._watch is None:
            return
        with self._audit.aside():
            try:
                for opened in self._watch.drain():
                    self._note_opened(opened)
            except native.CannotWatchError as error:
                self._notes.add(Fact.OBSTACLE, str(error))

    def program(self, steps: Steps) -> Program:
        """End the recording, and return what it shows. Raises OSError, ValueError."""
        self.drain()
        self._audit.stop()
        is_partly_unseen = self._end() or self._has_unseen_device_threads()
        self._note_import_paths()
        self._note_links()
        for path in native.mapped_files():
            self._contents.opened(path)
            if self._places.classify(path)[0] is Owner.OUTSIDE:
                self._contents.read(path)
        if shared := shared_code.shared_files(self._todo):
            self._notes.add(
                Fact.OBSTACLE,
                f"it uses a copy of code of this repository: {shared_code.in_words(shared)}; "
                "the copy runs, whatever the checkout holds",
            )
        self._note_files_of_checkouts()
        if steps.obstacle:
            self._notes.add(Fact.OBSTACLE, steps.obstacle)
        assembly = Assembly(self._notes.read(), self._todo.root)
        return assembly.program(
            workload=self._todo.workload.id, steps=steps.count, wholly=is_partly_unseen
        )

    def _note_files_of_checkouts(self) -> None:
        """Note that the program uses a file of a checkout that lies beyond the root.

        It is no file that stays the same from commit to commit.
        """
        # The workload of the head runs on both sides, with what lies beside it.
        workloads = f"{os.path.dirname(self._todo.workload.file)}/"
        for fact, path, _ in self._notes.read():
            folder = f"{path}/"
            is_of_workload = folder.startswith(workloads) or workloads.startswith(folder)
            if fact is Fact.OUTSIDE and not is_of_workload and (why := self._of_checkout(path)):
                self._notes.add(Fact.OBSTACLE, f"{path} {why}")
                return

    def _of_checkout(self, path: str) -> str:
        """Say to which checkout a path beyond the root belongs; "" if to none."""
        if self._places.is_of_other_side(path):
            return (
                "is a file of the head, and the base would use it, too: by an editable install, or "
                "by a path that names one checkout"
            )
        if self._places.is_neighbour(path):
            return (
                "belongs to the repository, and lies outside of the folder in which ci-perf runs; "
                "run it at the top of the repository"
            )
        return ""

    def _note_links(self) -> None:
        """Note the links through which native code may have come to a file that it has opened."""
        for link in self._watch.links if self._watch else ():
            target = self._places.in_repository(os.path.realpath(link))
            if target is None:
                continue
            if any(f"{name}/".startswith(f"{target}/") for name in self._opened):
                self._contents.read_link(link)

    def _note_import_paths(self) -> None:
        """Note where imports have looked that our search has not heard of: finders, archives."""
        for entry in {*sys.path, *sys.path_importer_cache}:
            path = absolute(entry)
            if path is not None and not os.path.isdir(path):
                self._contents.read(path)
        for finder in itertools.takewhile(lambda each: each is not self._searches, sys.meta_path):
            module = sys.modules.get(getattr(finder, "__module__", None) or "")
            file = getattr(module, "__file__", None)
            if file and self._places.in_repository(file) is not None:
                self._notes.add(Fact.OBSTACLE, "the program has a finder of modules of its own")

    def _has_unseen_device_threads(self) -> bool:
        """Whether autograd may call Python in threads of a device, which nobody sees."""
        return not executed.TOLD_ONCE and self._todo.device.startswith("cuda")

    def _begin(self) -> Callable[[], bool]:
        self._searches.note_loaded()
        patched.read_sources(self._places)
        patched.Questions(self._contents, self._places, self._audit).watch()
        patched.Variables(self._notes, self._places, self._audit).watch()
        patched.watch_lines(self._contents, self._audit)
        patched.watch_spawn(self._audit)
        sys.meta_path.insert(0, self._searches)
        end = self._watch_execution()
        sys.addaudithook(self._audit.hook())
        return end

    def _watch_execution(self) -> Callable[[], bool]:
        if not executed.TOLD_ONCE:
            return executed.Profilers(self._executed.note).end
        try:
            return executed.watch_starts(self._executed.note)
        except executed.NoMonitoringError as error:
            self._notes.add(Fact.OBSTACLE, str(error))
            return lambda: False

    def _watch_kernel(self, folder: Path) -> native.OpenedFiles | None:
        try:
            return native.OpenedFiles(self._places.real_root, folder)
        except native.CannotWatchError as error:
            self._notes.add(Fact.OBSTACLE, str(error))
            return None

    def _note_opened(self, opened: native.Opened) -> None:
        name = self._places.in_repository(opened.path)
        if name is None:
            return
        self._opened.add(name)
        if self._is_known(name):
            return
        if opened.was_made:
            self._notes.add(Fact.MADE, name)
        elif opened.is_folder:
            self._contents.opened_folder(opened.path, name)
        elif opened.was_changed:
            self._notes.add(Fact.OBSTACLE, f"{name}: native code has changed it")
        else:
            self._contents.opened(opened.path)

    def _is_known(self, name: str) -> bool:
        facts = (Fact.SOURCE, Fact.DATA, Fact.PRODUCT, Fact.MADE)
        return any(self._notes.has(fact, name) for fact in facts)


@contextlib.contextmanager
def of(todo: Task, folder: Path, name: str) -> Iterator[Steps | None]:
    """Within, record the task where it asks for it, and leave its Program as `name` in `folder`.

    Ranks of one launch share their facts, and each leaves what is known at its end. Yields the
    counter of its steps; `None` where nothing is recorded.
    """
    if not todo.record:
        yield None
        return
    recording, trouble = _begun(todo, folder)
    steps = Steps(todo.record_steps, recording.drain if recording else lambda: None)
    yield steps
    program = nothing_recorded(todo.workload.id, trouble)
    if recording is not None:
        try:
            program = recording.program(steps)
        except Exception as error:  # noqa: BLE001  the launch has gone well
            program = nothing_recorded(todo.workload.id, _words(error))
    files.write(folder / name, program)


def _begun(todo: Task, folder: Path) -> tuple[Recording | None, str]:
    try:
        return Recording(todo, folder), ""
    except Exception as error:  # noqa: BLE001  the launch goes on, and the record says why it is none
        return None, _words(error)


def _words(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:500]
