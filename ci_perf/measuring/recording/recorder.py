"""Record which files a launch uses, from before torch is imported to its last step.

It is the very launch that is timed. What cannot be known is an obstacle in the record, and never
an error of the launch.
"""

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from ci_perf.measuring import own_code
from ci_perf.measuring.recording import kernel
from ci_perf.measuring.recording.kernel import KernelWatch
from ci_perf.measuring.recording.notes import NoteKind, Notes
from ci_perf.measuring.recording.used import Owner, UsedPaths
from ci_perf.measuring.recording.watch import Watch
from ci_perf.model.program import Program, blob, record_nothing
from ci_perf.model.task import Task
from ci_perf.system import contents, files

_NOTES = "used.jsonl"
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
        self._watch = Watch(self._used, self._read_kernel)
        self._kernel: KernelWatch | None = None
        loaded = {name.partition(".")[0] for name in [*sys.modules]}
        for entry in map(os.path.abspath, [*sys.path]):
            is_archive = os.path.isfile(entry)
            self._used.note(entry, NoteKind.READ if is_archive else NoteKind.EXISTS)
            for name in sorted({*loaded, *_AT_START}):
                self._used.note_search(entry, name)
        self._watch.start()
        if not todo.only_libraries:  # else others import meanwhile, and the kernel would tell of it
            self.watch_kernel()

    def watch_kernel(self) -> None:
        """Have the kernel tell which files are opened; of several ranks, one is told for all."""

        def start() -> None:
            self._kernel = KernelWatch(self._used.root, spared=self._used.inside)

        if self._kernel is None and os.environ.get("LOCAL_RANK", "0") == "0":
            self._watch.hear(start)

    @contextlib.contextmanager
    def pause(self) -> Iterator[None]:
        """Within, what this thread does is no work of the program's."""
        self._watch.hear(self._read_kernel)
        with self._watch.pause():
            yield
        self._watch.hear(
            lambda: self._read_kernel(skips_folders=True)
        )  # but those of other threads

    def _read_kernel(self, *, skips_folders: bool = False) -> None:
        """Take what the kernel has told so far: it keeps some thousand events."""
        for path, mask in self._kernel.read() if self._kernel else ():
            if self._used.find_owner(path) is not Owner.REPOSITORY:
                continue
            if mask & kernel.MOVED:
                name = self._used.find_name(path)
                self._notes.add(NoteKind.OBSTACLE, f"{name} was moved or removed while it ran")
            elif mask & kernel.CHANGED:
                self._notes.add(NoteKind.CHANGED, path)
            elif not (skips_folders and mask & kernel.IS_FOLDER):
                is_folder = mask & kernel.IS_FOLDER
                self._used.note(path, NoteKind.OPENED_FOLDER if is_folder else NoteKind.OPENED)

    def finish(self) -> Program:
        """End the recording, and return what it shows. Raises OSError, ValueError."""
        self._watch.hear(self._read_kernel)
        self._watch.is_over = True
        self._note_modules()
        for path in kernel.find_mapped_files():
            self._used.note(path, NoteKind.READ)
        if shared := own_code.find_copies(self._todo):
            self._notes.add(
                NoteKind.OBSTACLE,
                f"it uses a copy of code of this repository: {own_code.name_copies(shared)}; "
                "the copy runs, whatever the checkout holds",
            )
        notes = self._notes.read()
        if notes[NoteKind.OPENED].keys() - {*notes[NoteKind.SOURCE], *notes[NoteKind.READ]}:
            for link in self._kernel.links if self._kernel else ():  # it may have led there
                self._notes.add(NoteKind.LINK, link, os.readlink(link))
        # Git changes what it checks out as these files say.
        used = notes[NoteKind.SOURCE] | notes[NoteKind.READ] | notes[NoteKind.OPENED]
        for folder in {str(above) for path in used for above in Path(path).parents}:
            if self._used.find_name(folder) is not None:
                self._used.note(f"{folder}/.gitattributes", NoteKind.READ)
        return self._assemble(self._notes.read())

    def _note_modules(self) -> None:
        """Note what is imported in another way than by opening its source."""
        for module in [*sys.modules.values()]:
            file = getattr(module, "__dict__", {}).get("__file__")
            if isinstance(file, str) and file.startswith("/"):
                real = self._used.resolve(file)
                if not self._notes.has(NoteKind.SOURCE, real):
                    self._used.note(file, NoteKind.READ)
        for finder in sys.meta_path:
            its_module = sys.modules.get(getattr(finder, "__module__", None) or "")
            file = getattr(its_module, "__file__", None)
            if file and self._used.find_owner(self._used.resolve(file)) is Owner.REPOSITORY:
                self._notes.add(NoteKind.OBSTACLE, "it has a finder of modules of its own")

    def _assemble(self, notes: dict[NoteKind, dict[str, str]]) -> Program:
        find_name = self._used.find_name
        paths, outside, obstacles = self._compare_contents(notes)
        searches: dict[str, set[str]] = {}
        for path, why in (notes[NoteKind.SEARCHED] | notes[NoteKind.MISSING]).items():
            folder, name = os.path.split(path)
            below = find_name(folder)
            if below is not None:
                searches.setdefault(below, set()).add(name)
            elif not why:
                outside[path] = ""
        for path in {*notes[NoteKind.EXISTS], *self._find_searched(searches, notes)}:
            paths.setdefault(find_name(path) or "", "folder" if os.path.isdir(path) else "file")
        opened = notes[NoteKind.OPENED_FOLDER]
        opened = {path: opened[path] for path in opened.keys() - notes[NoteKind.IMPORTED_FROM]}
        for path, listing in (opened | notes[NoteKind.LISTED]).items():
            below = find_name(path)
            if below is None:
                outside[path] = listing
            else:
                paths[below] = f"folder {listing}"
        for link, target in notes[NoteKind.LINK].items():
            paths[find_name(link) or ""] = f"link {blob(os.fsencode(target))}"
        return Program(
            workload=self._todo.workload.id,
            variables=dict(sorted(notes[NoteKind.VARIABLE].items())),
            paths=dict(sorted(paths.items())),
            searches={folder: tuple(sorted(names)) for folder, names in sorted(searches.items())},
            outside=dict(sorted(outside.items())),
            obstacles=tuple(text[:_TEXT_CHARS] for text in sorted(obstacles)[:_MOST_OBSTACLES]),
        )

    def _compare_contents(
        self, notes: dict[NoteKind, dict[str, str]]
    ) -> tuple[dict[str, str], dict[str, str], list[str]]:
        """Return the states of files, the digests of those beyond the root, and obstacles."""
        paths: dict[str, str] = {}
        outside: dict[str, str] = {}
        obstacles = [*notes[NoteKind.OBSTACLE]]
        told = notes[NoteKind.OPENED] | notes[NoteKind.SOURCE] | notes[NoteKind.READ]
        imported = notes[NoteKind.SOURCE].keys() - notes[NoteKind.READ]
        used = told | notes[NoteKind.EXISTS] | notes[NoteKind.MISSING]
        changed = notes[NoteKind.CHANGED].keys() & used
        obstacles += [f"{self._used.find_name(path)} was changed while it ran" for path in changed]
        for path, before in told.items():
            below = self._used.find_name(path)
            state = contents.find_state(path)
            try:
                if state is None or contents.describe_state(state) != before:
                    obstacles.append(f"{below or path} was changed while it ran")
                elif below is None:
                    outside[path] = contents.digest_outside(path)
                else:
                    kind = "code" if path in imported else "file"
                    paths[below] = f"{kind} {files.compute_blob(Path(path))}"
            except (OSError, ValueError) as error:
                obstacles.append(f"{below or path}: {error}")
        return paths, outside, obstacles

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
                    if f"{here}/{entry}" not in notes[NoteKind.MISSING]:
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
        own_code.check(todo)


@contextlib.contextmanager
def record(
    todo: Task, folder: Path, name: str, *, is_forked: bool = False
) -> Iterator[Recording | None]:
    """Within, record what the task uses, and leave its Program as `name` in `folder`.

    Ranks of one launch share their notes, and each leaves what is known at its end. A launch that
    profiles is not recorded, nor one that is forked: what it inherits nobody has seen.
    """
    if todo.profiler or is_forked or todo.workload.launch == "fork":
        yield None
        return
    recording = None
    program = None
    try:
        recording = Recording(todo, folder)
        _RECORDINGS.append(recording)
    except Exception as error:  # noqa: BLE001  the launch goes on, and the record says why it is none
        program = record_nothing(todo.workload.id, f"{type(error).__name__}: {error}")
    yield recording
    if recording is not None:
        try:
            program = recording.finish()
        except Exception as error:  # noqa: BLE001  the launch has gone well
            program = record_nothing(todo.workload.id, f"{type(error).__name__}: {error}")
    if program is not None:
        files.write(folder / name, program)
