"""Record which files a launch uses, from before torch is imported to its last step.

It is the very launch that is timed. What cannot be known is an obstacle in the record, and never
an error of the launch.
"""

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from ci_perf.features.same_program import contents, kernel, patches, shared_code
from ci_perf.features.same_program.audit import Audit, find_absolute
from ci_perf.features.same_program.kernel import KernelWatch
from ci_perf.features.same_program.notes import NoteKind, Notes
from ci_perf.features.same_program.used import Owner, UsedPaths
from ci_perf.model.program import Program, blob, nothing_recorded
from ci_perf.model.task import Task
from ci_perf.system import files

_NOTES = "used.jsonl"
_MOST_FILES = 20_000
# Of one text; a run file would refuse a longer one.
_TEXT_CHARS = 500
_MOST_OBSTACLES = 20
# Python itself looks for these when it starts.
_AT_START = ("sitecustomize", "usercustomize")


class Recording:
    """The recording of one launch, from the moment it is made."""

    def __init__(self, todo: Task, folder: Path) -> None:
        """Begin to record. Raises OSError."""
        self._todo = todo
        self._notes = Notes(folder / _NOTES)
        self._used = UsedPaths(todo, folder, self._notes)
        self._audit = Audit(self._used, self.read_kernel)
        self._watch: KernelWatch | None = None
        loaded = {name.partition(".")[0] for name in [*sys.modules]}
        for entry in [*sys.path]:
            for name in sorted({*loaded, *_AT_START}):
                self._used.note_search(os.path.abspath(entry), name)
        patches.watch_questions(self._used, self._audit)
        patches.watch_searches(self._used, self._audit)
        patches.Variables(self._used, self._audit).watch()
        patches.watch_lines(self._used, self._audit)
        patches.watch_spawn(self._audit)
        self._audit.start()
        if not todo.only_libraries:  # else others import meanwhile, and the kernel would tell of it
            self.watch_kernel()

    def watch_kernel(self) -> None:
        """Have the kernel tell which files are opened; of several ranks, one is told for all."""
        if self._watch is None and os.environ.get("LOCAL_RANK", "0") == "0":
            with self._audit.aside():
                try:
                    spared = self._used.inside
                    self._watch = KernelWatch(self._used.root, spared=spared)
                except kernel.CannotWatchError as error:
                    self._notes.add(NoteKind.OBSTACLE, str(error))

    def read_kernel(self) -> None:
        """Take what the kernel has told so far: it keeps some thousand events."""
        if self._watch is None:
            return
        with self._audit.aside():
            try:
                for event in self._watch.read():
                    self._hear(event)
            except kernel.CannotWatchError as error:
                self._notes.add(NoteKind.OBSTACLE, str(error))

    @contextlib.contextmanager
    def pause(self) -> Iterator[None]:
        """Within, what this thread does is no work of the program's."""
        self.read_kernel()
        with self._audit.aside():
            yield
            for event in self._watch.read() if self._watch else ():
                if not event.is_folder:  # the program may go on in other threads
                    self._hear(event)

    def _hear(self, event: kernel.KernelEvent) -> None:
        if self._used.find_owner(event.path) is not Owner.REPOSITORY:
            return
        if event.is_made:
            self._notes.add(NoteKind.MADE, event.path)
        elif event.is_changed:
            self._notes.add(NoteKind.CHANGED, event.path)
        else:
            kind = NoteKind.OPENED_FOLDER if event.is_folder else NoteKind.OPENED
            self._used.note(event.path, kind)

    def finish(self) -> Program:
        """End the recording, and return what it shows. Raises OSError, ValueError."""
        self.read_kernel()
        self._audit.stop()
        self._note_modules()
        opened = self._notes.read()[NoteKind.OPENED]
        for link in self._watch.links if self._watch else ():
            target = os.path.realpath(link)
            if any(f"{path}/".startswith(f"{target}/") for path in opened):
                self._notes.add(NoteKind.LINK, link)
        for path in kernel.find_mapped_files():
            self._used.note(path, NoteKind.READ)
        if shared := shared_code.find_copies(self._todo):
            self._notes.add(
                NoteKind.OBSTACLE,
                f"it uses a copy of code of this repository: {shared_code.name_copies(shared)}; "
                "the copy runs, whatever the checkout holds",
            )
        self._note_attributes()
        return self._assemble()

    def _note_modules(self) -> None:
        """Note what is imported, and where imports have looked that no search has told of."""
        for module in [*sys.modules.values()]:
            file = getattr(module, "__dict__", {}).get("__file__")
            if isinstance(file, str) and file.startswith("/"):
                real = self._used.resolve(file)
                if not self._notes.has(NoteKind.SOURCE, real):
                    self._used.note(file, NoteKind.READ)
        for entry in {*sys.path, *sys.path_importer_cache}:
            path = find_absolute(entry)
            if path is not None and not os.path.isdir(path):
                self._used.note(path, NoteKind.READ)
        for finder in sys.meta_path:
            its_module = sys.modules.get(getattr(finder, "__module__", None) or "")
            file = getattr(its_module, "__file__", None)
            if file and self._used.find_owner(self._used.resolve(file)) is Owner.REPOSITORY:
                self._notes.add(NoteKind.OBSTACLE, "it has a finder of modules of its own")

    def _note_attributes(self) -> None:
        """Note the files that say how git changes what is used where it checks it out."""
        notes = self._notes.read()
        folders = {
            os.path.dirname(path)
            for path in notes[NoteKind.SOURCE] | notes[NoteKind.READ] | notes[NoteKind.OPENED]
        }
        for folder in {f"{above}" for each in folders for above in (each, *Path(each).parents)}:
            if self._used.find_name(folder) is not None:
                self._used.note(f"{folder}/.gitattributes", NoteKind.READ)

    def _assemble(self) -> Program:
        notes, find_name = self._notes.read(), self._used.find_name
        blobs, code, outside, obstacles = self._compare_contents(notes)
        folders: dict[str, str] = {}
        searches: dict[str, set[str]] = {}
        for path in notes[NoteKind.SEARCHED] | notes[NoteKind.MISSING]:
            folder, name = os.path.split(path)
            below = find_name(folder)
            if below is None:
                outside[path] = ""
            else:
                searches.setdefault(below, set()).add(name)
        there = {*notes[NoteKind.EXISTS], *self._find_searched(searches, notes)}
        for path in there:
            below = find_name(path) or ""
            if os.path.isdir(path):
                folders[below] = ""
            else:
                blobs.setdefault(below, "")
        known = notes[NoteKind.LISTED] | notes[NoteKind.IMPORTED_FROM] | notes[NoteKind.MADE]
        listed = {k: value for k, value in notes[NoteKind.OPENED_FOLDER].items() if k not in known}
        for path, listing in (listed | notes[NoteKind.LISTED]).items():
            below = find_name(path)
            if below is None:
                outside[path] = listing
            else:
                folders[below] = listing
        if len(blobs) > _MOST_FILES:
            obstacles.append(f"it uses {len(blobs):,} files")
            blobs = {}
        links = {find_name(link) or "": os.readlink(link) for link in notes[NoteKind.LINK]}
        return Program(
            workload=self._todo.workload.id,
            variables=dict(sorted(notes[NoteKind.VARIABLE].items())),
            files=dict(sorted(blobs.items())),
            code=tuple(sorted(code)),
            folders=dict(sorted(folders.items())),
            links={link: blob(os.fsencode(target)) for link, target in sorted(links.items())},
            searches={folder: tuple(sorted(names)) for folder, names in sorted(searches.items())},
            outside=dict(sorted(outside.items())),
            obstacles=tuple(text[:_TEXT_CHARS] for text in sorted(obstacles)[:_MOST_OBSTACLES]),
        )

    def _compare_contents(
        self, notes: dict[NoteKind, dict[str, str]]
    ) -> tuple[dict[str, str], list[str], dict[str, str], list[str]]:
        """Return the blobs of files, which of them are code, digests of others, and obstacles."""
        blobs: dict[str, str] = {}
        outside: dict[str, str] = {}
        obstacles = [*notes[NoteKind.OBSTACLE]]
        told = notes[NoteKind.SOURCE] | notes[NoteKind.READ]
        done = told | notes[NoteKind.MADE] | notes[NoteKind.REWRITTEN]
        opened = {path: state for path, state in notes[NoteKind.OPENED].items() if path not in done}
        links = notes[NoteKind.LINK]
        changed = {path for path in notes[NoteKind.CHANGED] if path not in done or path in links}
        for path, before in (opened | told).items():
            below = self._used.find_name(path)
            state = contents.find_state(path)
            if state is None or contents.describe_state(state) != before:
                changed.add(path)
                continue
            try:
                if below is None:
                    outside[path] = contents.digest_outside(path)
                else:
                    blobs[below] = files.compute_blob(Path(path))
            except (OSError, ValueError) as error:
                obstacles.append(f"{below or path}: {error}")
        names = [self._used.find_name(path) or path for path in changed]
        obstacles += [f"{name} was changed while it ran" for name in names]
        imported = notes[NoteKind.SOURCE].keys() - notes[NoteKind.READ].keys()
        code = [below for path in imported if (below := self._used.find_name(path)) in blobs]
        return blobs, [below for below in code if below], outside, obstacles

    def _find_searched(
        self, searches: dict[str, set[str]], notes: dict[NoteKind, dict[str, str]]
    ) -> Iterator[str]:
        """Yield what is there and has a name that was looked for; not what the program has made."""
        for folder, names in searches.items():
            here = os.path.join(self._used.root, folder).rstrip("/")

            def read(name: str, here: str = here) -> bytes | None:
                with contextlib.suppress(OSError):
                    return Path(here, name).read_bytes()
                return None

            with contextlib.suppress(OSError):
                for entry in contents.find_matches(names, os.listdir(here), read):
                    if f"{here}/{entry}" not in notes[NoteKind.MADE]:
                        yield f"{here}/{entry}"


# That of this process, if any.
_RECORDINGS: list[Recording] = []


def check_code(todo: Task) -> None:
    """Look at what a task has imported so far, unseen by its recording.

    Raises ForeignCodeError.
    """
    with contextlib.ExitStack() as stack:
        for recording in _RECORDINGS:
            stack.enter_context(recording.pause())
        shared_code.check(todo)


@contextlib.contextmanager
def record(todo: Task, folder: Path, name: str) -> Iterator[Recording | None]:
    """Within, record what the task uses, and leave its Program as `name` in `folder`.

    Ranks of one launch share their notes, and each leaves what is known at its end. A launch that
    profiles is not recorded, nor one that is forked: what it inherits nobody has seen.
    """
    if todo.profile or todo.workload.launch == "fork":
        yield None
        return
    recording = None
    program = None
    try:
        recording = Recording(todo, folder)
        _RECORDINGS.append(recording)
    except Exception as error:  # noqa: BLE001  the launch goes on, and the record says why it is none
        program = nothing_recorded(todo.workload.id, f"{type(error).__name__}: {error}")
    yield recording
    if recording is not None:
        try:
            program = recording.finish()
        except Exception as error:  # noqa: BLE001  the launch has gone well
            program = nothing_recorded(todo.workload.id, f"{type(error).__name__}: {error}")
    if program is not None:
        files.write(folder / name, program)
