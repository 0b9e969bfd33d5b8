"""pytest in forks of this process, in a copy of the tree: what a test reaches, what it notices."""

import ast
import bisect
import builtins
import compileall
import contextlib
import functools
import importlib
import itertools
import json
import os
import py_compile
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from benchmarks.mutants import faults
from benchmarks.mutants.faults import Mutant

_ROOT = Path(__file__).parents[2]
_COPIED = ["ci_perf", "tests", "workloads", "benchmarks", "docs", "examples", "pyproject.toml"]
# Imported once, before the forks, because every test file would wait for them.
_HEAVY = [
    "pytest",
    "hypothesis",
    "numpy",
    "scipy.stats",
    "msgspec",
    "click",
    "github",
    "jsonschema",
]
# What the tests of a fork print, in the copy.
_SAID = "said.log"
# A mutant may take this many times as long as its tests took, and some seconds to start.
_PATIENCE, _START_S = 5.0, 30.0
# Tests of as many seconds meet a mutant, short ones first. What survives these may die of the
# others: too many are listed as survivors, and never too few.
BUDGET_S = 40.0
# Every function of an area adds its name to this set of builtins, which is quicker than a tracer.
_SET = "_entered_by_a_test"


class Outcome(Enum):
    """What became of a mutant."""

    KILLED = "killed"
    TIMED_OUT = "timed out"
    SURVIVED = "survived"


@dataclass(frozen=True, slots=True)
class Tests:
    """The tests of some code: what each of them enters, and how long it takes."""

    functions: dict[str, frozenset[tuple[str, str]]]
    seconds: dict[str, float]

    def concerned(self, mutant: Mutant, *, budget_s: float) -> list[str]:
        """Name the tests that can notice a mutant: short ones of the same file first."""
        if mutant.function:
            name = (mutant.path, mutant.function)
            reaching = [test for test, entered in self.functions.items() if name in entered]
        else:
            reaching = list(self.seconds)
        ordered = sorted(reaching, key=lambda test: self._order(test, mutant))
        spent = list(itertools.accumulate(self._s(test) for test in ordered))
        return ordered[: max(1, bisect.bisect(spent, budget_s))]

    def _order(self, test: str, mutant: Mutant) -> tuple[bool, float]:
        return not self._is_near(test, mutant), self._s(test)

    def _is_near(self, test: str, mutant: Mutant) -> bool:
        if self._s(test) > 1:
            return False
        if mutant.function:
            return f"test_{Path(mutant.path).stem}.py" in test
        return any(path == mutant.path for path, _ in self.functions[test])

    def _s(self, test: str) -> float:
        return self.seconds[test]


@contextlib.contextmanager
def copied() -> Iterator[Path]:
    """Work in a copy of the tree, which child processes of tests import as well."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        root = Path(folder).resolve()
        for name in _COPIED:
            if (_ROOT / name).is_dir():
                ignored = shutil.ignore_patterns("node_modules", "__pycache__")
                shutil.copytree(_ROOT / name, root / name, ignore=ignored)
            else:
                shutil.copy(_ROOT / name, root / name)
        # By hash: a mutant may be as long and as old as what it replaces.
        mode = py_compile.PycInvalidationMode.CHECKED_HASH
        compileall.compile_dir(root / "ci_perf", quiet=1, force=True, invalidation_mode=mode)
        os.environ["PYTHONPATH"] = str(root)
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
        sys.dont_write_bytecode = True
        sys.path[:] = [str(root), *(path for path in sys.path if Path(path).resolve() != _ROOT)]
        for name in _HEAVY:
            importlib.import_module(name)
        with contextlib.chdir(root):
            yield root


def python_files(names: Iterable[str]) -> list[str]:
    """List files, and those in folders; a name may be one that nothing has yet."""
    files: list[Path] = []
    for name in names:
        path = Path(name)
        files += sorted(path.rglob("*.py")) if path.is_dir() else [path] * path.exists()
    return [str(path) for path in files]


def reached(sources: Sequence[str], tests: Sequence[str]) -> Tests:
    """Run all tests once, and learn which functions of the sources they enter."""
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        path = Path(folder, "reached.json")

        def run() -> int:
            plugin = _Reached()
            code = _pytest(python_files(tests), plugin)
            path.write_text(json.dumps([plugin.functions, plugin.seconds]), encoding="utf-8")
            return code

        for name in python_files(sources):
            source = Path(name).read_text(encoding="utf-8")
            stack.enter_context(_changed(name, noting(name, source)))
        if _in_a_fork(run, limit_s=3600) != 0:
            said = Path(_SAID).read_text(encoding="utf-8").splitlines()[-40:]
            raise SystemExit("the tests fail without any mutant\n" + "\n".join(said))
        functions, seconds = json.loads(path.read_text(encoding="utf-8"))
    return Tests({test: frozenset(map(tuple, names)) for test, names in functions.items()}, seconds)


def noting(path: str, source: str) -> str:
    """Return a source whose functions note that they are entered."""
    tree = ast.parse(source)
    for place in list(faults.places(tree)):
        node = place.node
        if isinstance(node, ast.FunctionDef) and place.function:
            note = ast.parse(f"{_SET}.add({(path, place.function)!r})").body
            node.body[_after_docstring(node) : _after_docstring(node)] = note
    opened = f"import builtins as {_SET}\n{_SET} = vars({_SET}).setdefault({_SET!r}, set())"
    tree.body[_after_docstring(tree) : _after_docstring(tree)] = ast.parse(opened).body
    return ast.unparse(ast.fix_missing_locations(tree))


def _after_docstring(node: ast.FunctionDef | ast.Module) -> int:
    return int(ast.get_docstring(node) is not None)


def judged(mutant: Mutant, tests: Tests, *, budget_s: float = BUDGET_S) -> Outcome:
    """Run the tests that concern a mutant, until one fails."""
    with _changed(mutant.path, mutant.text()):
        for some in _in_two(tests.concerned(mutant, budget_s=budget_s)):
            limit_s = _START_S + _PATIENCE * sum(tests.seconds[test] for test in some)
            work = functools.partial(_pytest, _files_of(some), _Only(some))
            code = _in_a_fork(work, limit_s=limit_s)
            if code != 0:
                return Outcome.TIMED_OUT if code is None else Outcome.KILLED
    return Outcome.SURVIVED


def _in_two(tests: Sequence[str]) -> list[list[str]]:
    """Begin with few files: most mutants end there, before the others are imported."""
    few = _files_of(tests)[:3]
    first = [test for test in tests if test.partition("::")[0] in few]
    rest = [test for test in tests if test.partition("::")[0] not in few]
    return [some for some in (first, rest) if some]


def _files_of(tests: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(test.partition("::")[0] for test in tests))


@contextlib.contextmanager
def _changed(name: str, text: str) -> Iterator[None]:
    """Let a file of the copy hold another text."""
    path = Path(name)
    source = path.read_bytes()
    path.write_text(text, encoding="utf-8")
    try:
        yield
    finally:
        path.write_bytes(source)


class _Reached:
    """A plugin of pytest that notes what each test enters, and how long it takes."""

    def __init__(self) -> None:
        self.functions: dict[str, list[tuple[str, str]]] = {}
        self.seconds: dict[str, float] = {}
        self._entered: set[tuple[str, str]] = vars(builtins).setdefault(_SET, set())

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Begin before the fixtures of a test."""
        self.seconds[nodeid] = -time.monotonic()
        self._entered.clear()

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """End after them."""
        self.seconds[nodeid] += time.monotonic()
        self.functions[nodeid] = sorted(self._entered)


class _Only:
    """A plugin of pytest that leaves the named tests, in their order."""

    def __init__(self, tests: Sequence[str]) -> None:
        self._order = {test: index for index, test in enumerate(tests)}

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Leave out and sort."""
        items[:] = [item for item in items if item.nodeid in self._order]
        items.sort(key=lambda item: self._order[item.nodeid])


def _pytest(files: list[str], plugin: object) -> int:
    pytest = importlib.import_module("pytest")
    options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--hypothesis-seed=0"]
    # What was imported before the fork is not rewritten, and need not be.
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
    return int(pytest.main([*options, *files], plugins=[plugin]))


def _in_a_fork(work: Callable[[], int], *, limit_s: float) -> int | None:
    """Return the exit code of `work`, `None` where it took too long; nothing of it stays."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        _become(work)
    deadline = time.monotonic() + limit_s
    try:
        while time.monotonic() < deadline:
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.02)
        return None
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(child, 0)


def _become(work: Callable[[], int]) -> None:
    """Do the work, say what it says to a file, and end."""
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    said = os.open(_SAID, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
    for stream in (0, 1, 2):
        os.dup2(said, stream)
    code = 1
    try:
        code = work()
    except BaseException:  # noqa: BLE001  what a mutant raises ends this process only
        traceback.print_exc()
    sys.stdout.flush()
    os._exit(code)
