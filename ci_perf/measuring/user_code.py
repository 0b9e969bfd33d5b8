"""Load a workload file and what it imports, and name remedies for what it raises.

The only place that runs an author's import.
"""

import ast
import importlib
import importlib.util
import itertools
import os
import re
import sys
import sysconfig
from collections.abc import Callable, Iterator, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

import msgspec

from ci_perf.measuring.module_files import INSTALLED, OURS
from ci_perf.model.base import Count, Finite, Items, Name, Text
from ci_perf.workload import Context, Workload

# What judging/launch_numbers.py has peaks for; "" claims none.
PRECISIONS = ("", "fp32", "tf32", "fp16", "bf16")

# Where a build of torch is chosen.
SELECTOR = "https://pytorch.org/get-started/locally/"
INSTALL_CUDA = f"remove torch and install a build with CUDA, which {SELECTOR} names"
# How torch's operators say that their tensors lie on different devices; the last two are those of
# convolutions, which name the types of a tensor on a GPU and of one on the CPU.
_TWO_DEVICES = re.compile(
    r"(be|are|is) (not |placed )?(on|at) (the )?same device"
    r"|have (the )?same device"
    r"|is not on the expected device"
    r"|cross-device copies are not allowed"
    r"|type \(torch\.cuda\.\w+\) and \w+ type \(torch\.(?!cuda)"
    r"|type \(torch\.(?!cuda)\w+\) and \w+ type \(torch\.cuda\."
)
_NO_CUDA = "Torch not compiled with CUDA enabled"
_NOT_IMPORTED = ("No module named ", "cannot import name ")
_MOVE = "`model.to(context.device)`, `tensor.to(context.device)`"
_BUILT_IN = {"built-in", "frozen"}
# The first optimizer imports it, for a second; torch alone is imported in less than two.
_LATE = ("torch._dynamo",)


class WorkloadError(Exception):
    """The workload file breaks its contract; the message says how."""


def load(
    file: Path,
    root: Path,
    python_path: Sequence[str] = (),
    *,
    after_libraries: Callable[[], object] | None = None,
) -> "Builder":
    """Import FILE with the repository and the file's own folder on the path.

    The repository comes first: its package is under measure, not an installed copy; then the
    folders of it in `python_path`, such as `src`. The file's folder comes last:
    workloads/transformers.py must not stand in for the library of that name. Programs that the
    workload starts get all but that folder by PYTHONPATH. With
    `after_libraries` the installed libraries that FILE imports before anything else come first;
    then that is called, and all the rest follows.

    Raises WorkloadError where there is no `build`, and whatever the file raises.
    """
    name = _module_name(file)
    if (known := sys.modules.get(name)) and known.__file__ == str(file):  # this process is forked
        return Builder(file.name, known.build)
    add_paths(file, root, python_path)
    if after_libraries is not None:
        import_libraries(file)
        after_libraries()
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # pickling by loader workers looks here
    spec.loader.exec_module(module)
    build = getattr(module, "build", None)
    if not callable(build):
        raise WorkloadError(
            f"{file.name}: expected a function `build(context)`, found "
            f"{'none' if build is None else type(build).__name__}"
        )
    return Builder(file.name, build, getattr(module, "prepare", None))


def add_paths(file: Path, root: Path, python_path: Sequence[str]) -> None:
    """Search for modules as FILE does, once: what has loaded it may have changed the path since."""
    if _module_name(file) in sys.modules:  # this process is forked
        return
    sources = [str(root), *(str(root / folder) for folder in python_path)]
    if [*sys.path[: len(sources)], sys.path[-1]] == [*sources, str(file.parent)]:
        return
    sys.path = [*sources, *sys.path, str(file.parent)]
    inherited = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join([*sources, *([inherited] if inherited else [])])


def find_in_spawned(file: Path) -> None:
    """Let a process that multiprocessing has spawned unpickle what FILE defines."""
    sys.meta_path.append(_WorkloadFinder(file))


def _module_name(file: Path) -> str:
    return f"ci_perf_workload_{file.stem}"


class _WorkloadFinder(MetaPathFinder):
    """Finds a workload file under the name that it has here, which no library has."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def find_spec(self, fullname: str, path: object, target: object = None) -> ModuleSpec | None:
        """See MetaPathFinder."""
        del path, target
        if fullname != _module_name(self._file):
            return None
        return importlib.util.spec_from_file_location(fullname, self._file)


def import_libraries(file: Path) -> None:
    """Run the imports with which FILE begins, as far as they are of installed libraries.

    They are its own statements, in their order: nothing is imported that it would not import at
    this point by itself.

    A file that cannot be read or parsed is left to whoever imports it: it fails there again. Raises
    what a library raises, which a second try might hide.
    """
    try:
        tree = ast.parse(file.read_bytes(), str(file))
        first = itertools.takewhile(
            lambda each: _is_docstring(each) or _imports_libraries(each), tree.body
        )
        begin = compile(ast.Module(body=list(first), type_ignores=[]), str(file), "exec")
    except Exception:  # noqa: BLE001  a finder of the author's may raise anything
        return
    exec(begin, {"__name__": __name__})  # noqa: S102  the author's


def name_libraries(file: Path, own: Sequence[Path]) -> tuple[str, ...]:
    """Name the libraries that FILE imports before anything else, in its order.

    The code of the repository lies in the folders `own`. Nothing is imported to find out.
    """
    try:
        body = ast.parse(file.read_bytes(), str(file)).body
    except Exception:  # noqa: BLE001  whoever imports it says so
        return ()
    libraries: dict[str, None] = {}
    for statement in itertools.filterfalse(_is_docstring, body):
        names = [name.partition(".")[0] for name in _name_imports(statement)]
        files = (folder / f"{name}{end}" for name in names for folder in own for end in ("", ".py"))
        if not names or any(map(Path.exists, files)):
            break
        libraries |= dict.fromkeys(names)
    return tuple(name for name in libraries if name not in {*sys.stdlib_module_names, "ci_perf"})


class LateImports(MetaPathFinder):
    """Finds which slow modules of libraries are first imported by `build` or a step.

    A process that is forked may have them before, as `name_libraries` has others: unless the code
    of the author had changed what is read when they are imported, or stands in for them. What it
    changed and put back by the end of the step counts, too. A finder of its own comes first.
    """

    def __init__(self) -> None:
        """Begin, before the workload file is imported."""
        self._before = self._read()
        self._is_as_before: dict[str, bool] = {}
        sys.meta_path.insert(0, self)

    def find_spec(self, fullname: str, path: object, target: object = None) -> None:
        """See MetaPathFinder. It finds no module, and sees when one is looked for."""
        del path, target
        if fullname in _LATE:
            self._is_as_before[fullname] = self._read() == self._before

    def find(self) -> tuple[str, ...]:
        """Name those that are there by now, and end."""
        sys.meta_path[:] = [each for each in sys.meta_path if each is not self]
        return tuple(name for name in _LATE if name in sys.modules and self._is_as_before.get(name))

    @staticmethod
    def _read() -> tuple[object, ...]:
        # A recording takes a copy for no use of a value.
        return os.environ.copy(), sys.path[:], sys.path_hooks[:]


def import_ahead(names: Sequence[str]) -> None:
    """Import libraries for all files that begin with them. Raises what a library raises."""
    for name in itertools.takewhile(_is_library, names):
        importlib.import_module(name)


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _imports_libraries(statement: ast.stmt) -> bool:
    names = list(_name_imports(statement))
    return bool(names) and all(_is_library(name.partition(".")[0]) for name in names)


def _name_imports(statement: ast.stmt) -> Iterator[str]:
    """Yield the modules that a statement imports; nothing of another one, or of `from . import`."""
    if isinstance(statement, ast.Import):
        yield from (alias.name for alias in statement.names)
    elif isinstance(statement, ast.ImportFrom) and statement.module and not statement.level:
        yield statement.module


def _is_library(name: str) -> bool:
    """Whether a top-level module is Python's own, installed or ours, and none of the repository."""
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        return False
    origin = Path(spec.origin)
    return (
        spec.origin in _BUILT_IN
        or bool(INSTALLED & set(origin.parts))
        or origin.is_relative_to(sysconfig.get_path("stdlib"))
        or origin.is_relative_to(OURS)
    )


class Builder:
    """A loaded workload file."""

    def __init__(self, name: str, build: object, prepare: object = None) -> None:
        self._name = name
        self._build = build
        self._prepare = prepare

    def prepare(self, paths: Sequence[str]) -> None:
        """Do ahead what is the same for all launches that are forked, where the file says what."""
        if callable(self._prepare):
            self._prepare(paths)

    def build(self, context: Context) -> Workload:
        """Call the author's `build` and check what it returns."""
        assert callable(self._build)
        workload = self._build(context)
        if not isinstance(workload, Workload):
            raise WorkloadError(
                f"{self._name}: expected build() to return a ci_perf.workload.Workload, "
                f"found {type(workload).__name__}"
            )
        try:
            _check(workload)
        except WorkloadError as error:
            raise WorkloadError(f"{self._name}: {error}") from None
        return workload


def finite(value: object, name: str) -> float:
    """Return what the author calls a number as a float: also a tensor of one element.

    Raises WorkloadError for what is none, NaN and infinity among it; `name` begins the message.
    """
    elements = getattr(value, "numel", None)
    if callable(elements) and elements() != 1:
        raise WorkloadError(
            f"{name}: expected a finite number, found a tensor of {elements()} elements"
        )
    try:
        return msgspec.convert(_as_float(value), Finite)
    except (ArithmeticError, TypeError, ValueError):
        spelled = f"{value!r:.100}"
    raise WorkloadError(f"{name}: expected a finite number, found {spelled}")


def _as_float(value: Any) -> float:  # noqa: ANN401  whatever the author returns
    if isinstance(value, (str, bytes)):  # float() would read them
        raise TypeError
    return float(value)


def _check(workload: Workload) -> None:
    """Look at every field before anything is measured. Raises WorkloadError."""
    for name in ("step", "teardown", "loss", "output", "local_step"):
        value = getattr(workload, name)
        if not callable(value) and (value is not None or name == "step"):
            raise WorkloadError(f"{name}: expected a function, found {type(value).__name__}")
    items = finite(workload.items_per_step, "items_per_step")
    _convert(items, Items, "items_per_step: expected a number > 0", workload.items_per_step)
    if workload.items_per_epoch is not None:
        items = finite(workload.items_per_epoch, "items_per_epoch")
        expected = "items_per_epoch: expected a number > 0, or None"
        _convert(items, Items, expected, workload.items_per_epoch)
    unit = workload.item_unit
    _convert(unit, Name, "item_unit: expected one word of letters, digits and _.=+-", unit)
    if workload.precision not in PRECISIONS:
        known = ", ".join(repr(precision) for precision in PRECISIONS)
        raise WorkloadError(
            f"precision: expected one of {known}, found {workload.precision!r:.100}"
        )
    varies = workload.varies
    _convert(varies, Text, "varies: expected a sentence, or nothing", varies)
    count = workload.parameter_count
    _convert(count, Count | None, "parameter_count: expected a whole number, or None", count)


def _convert(value: object, kind: Any, expected: str, given: object) -> None:  # noqa: ANN401
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError:
        raise WorkloadError(f"{expected}, found {given!r:.100}") from None


def remedy(message: str) -> str:
    """Return what to change in the workload or on the machine; empty for every other error."""
    if _NO_CUDA in message:
        return (
            f"in build, use only the device of the run: {_MOVE}; to measure on a GPU, "
            f"{INSTALL_CUDA}"
        )
    if _TWO_DEVICES.search(message):
        return f"in build, put the model and every tensor on one device: {_MOVE}"
    if message.startswith(_NOT_IMPORTED):
        return (
            "install what the workload imports where ci-perf runs (`pip install`, or `setup` in "
            "suite.toml), and name the folders of your own sources in `python_path`"
        )
    return ""
