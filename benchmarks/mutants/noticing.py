"""Which tests reach which function, and which of them notice a mutant of it.

pytest imports and collects the tests of an area once. Then each mutant gets a fork, in which the
code of the changed function is replaced, and the tests that reach it are run. What is outside of
functions was evaluated at import: such a mutant gets a fork that imports everything anew.
"""

import ast
import bisect
import builtins
import functools
import inspect
import itertools
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from types import CodeType, FunctionType

import pytest

from benchmarks.mutants import faults, forks
from benchmarks.mutants.faults import Mutant

# A mutant may take this many times as long as its tests took, and some seconds to start.
_PATIENCE, _START_S = 5.0, 30.0
# Tests of as many seconds meet a mutant, short ones first. What survives these may die of the
# others: too many are listed as survivors, and never too few.
BUDGET_S = 40.0
# Every function of an area adds its name to this set of builtins, which is quicker than a tracer.
_SET = "_entered_by_a_test"
_AREA_S = 3 * 3600.0


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
        spent = list(itertools.accumulate(self.seconds[test] for test in ordered))
        return ordered[: max(1, bisect.bisect(spent, budget_s))]

    def limit_s(self, names: Sequence[str]) -> float:
        """Return how long these tests may take."""
        return _START_S + _PATIENCE * sum(self.seconds[test] for test in names)

    def _order(self, test: str, mutant: Mutant) -> tuple[bool, float]:
        return not self._is_near(test, mutant), self.seconds[test]

    def _is_near(self, test: str, mutant: Mutant) -> bool:
        if self.seconds[test] > 1:
            return False
        if mutant.function:
            return f"test_{Path(mutant.path).stem}.py" in test
        return any(path == mutant.path for path, _ in self.functions[test])


def outcomes(
    mutants: Sequence[Mutant],
    sources: Sequence[str],
    tests: Sequence[str],
    *,
    budget_s: float,
    tell: Callable[[Mutant, Outcome], None],
) -> Iterator[tuple[Mutant, Outcome]]:
    """Say what became of each mutant of one area, in the copy that is the current folder."""
    answers = Path("answers.json")
    answers.unlink(missing_ok=True)
    with ExitStack() as stack:
        for name in forks.python_files(sources):
            source = Path(name).read_text(encoding="utf-8")
            stack.enter_context(forks.changed(name, noting(name, source)))
        area = _Area(mutants, budget_s, answers, tell)
        code = forks.run(
            functools.partial(_pytest, forks.python_files(tests), area), limit_s=_AREA_S
        )
    if code != 0 or not answers.exists():
        raise SystemExit("the tests fail without any mutant\n" + forks.said())
    answered, functions, seconds = json.loads(answers.read_text(encoding="utf-8"))
    known = _tests(functions, seconds)
    for mutant, answer in zip(mutants, answered, strict=True):
        yield mutant, Outcome(answer) if answer else _judged_anew(mutant, known, budget_s, tell)


def _judged_anew(
    mutant: Mutant, tests: Tests, budget_s: float, tell: Callable[[Mutant, Outcome], None]
) -> Outcome:
    """Import everything with the mutant in its file."""
    names = tests.concerned(mutant, budget_s=budget_s)
    files = list(dict.fromkeys(test.partition("::")[0] for test in names))
    with forks.changed(mutant.path, mutant.text()):
        work = functools.partial(_pytest, files, _Only(names))
        outcome = _outcome(forks.run(work, limit_s=tests.limit_s(names)))
    tell(mutant, outcome)
    return outcome


def _outcome(code: int | None) -> Outcome:
    if code is None:
        return Outcome.TIMED_OUT
    return Outcome.SURVIVED if code == 0 else Outcome.KILLED


def _tests(functions: dict[str, list[tuple[str, str]]], seconds: dict[str, float]) -> Tests:
    sets = {
        test: frozenset((path, name) for path, name in names) for test, names in functions.items()
    }
    return Tests(sets, seconds)


# --- in the process that has collected the tests


class _Area:
    """A plugin of pytest that runs the tests once per mutant, each time in a fork."""

    def __init__(
        self,
        mutants: Sequence[Mutant],
        budget_s: float,
        answers: Path,
        tell: Callable[[Mutant, Outcome], None],
    ) -> None:
        self._mutants = mutants
        self._budget_s = budget_s
        self._answers = answers.resolve()
        self._tell = tell

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Learn what the tests reach, then let each mutant meet them."""
        if session.testsfailed:
            return False  # something could not be collected
        tests = self._reached(session)
        answers = [self._judged(session, mutant, tests) for mutant in self._mutants]
        document = [
            [answer.value if answer else "" for answer in answers],
            {test: sorted(names) for test, names in tests.functions.items()},
            tests.seconds,
        ]
        self._answers.write_text(json.dumps(document), encoding="utf-8")
        return True

    def _reached(self, session: pytest.Session) -> Tests:
        note = self._answers.with_name("reached.json")
        entered: set[tuple[str, str]] = vars(builtins).setdefault(_SET, set())

        def work() -> int:
            functions, seconds = {}, {}
            for item, after in _in_order(session.items):
                entered.clear()
                start = time.monotonic()
                _run_one(item, after)
                seconds[item.nodeid] = time.monotonic() - start
                functions[item.nodeid] = sorted(entered)
                if session.testsfailed:
                    return 1
            note.write_text(json.dumps([functions, seconds]), encoding="utf-8")
            return 0

        if forks.run(work, limit_s=_AREA_S, is_silent=False) != 0:
            raise SystemExit("a test fails without any mutant")
        return _tests(*json.loads(note.read_text(encoding="utf-8")))

    def _judged(self, session: pytest.Session, mutant: Mutant, tests: Tests) -> Outcome | None:
        """Return `None` where everything must be imported anew."""
        if not mutant.function:
            return None
        names = tests.concerned(mutant, budget_s=self._budget_s)
        items = {item.nodeid: item for item in session.items}
        chosen = [items[name] for name in names]

        def work() -> int:
            replace(mutant)
            for item, after in _in_order(chosen):
                _run_one(item, after)
                if session.testsfailed:
                    return 1
            return 0

        with forks.changed(mutant.path, mutant.text()):  # for child processes of tests
            code = forks.run(work, limit_s=tests.limit_s(names), is_silent=False)
        outcome = _outcome(code)
        self._tell(mutant, outcome)
        return outcome


def _in_order(items: list[pytest.Item]) -> Iterator[tuple[pytest.Item, pytest.Item | None]]:
    """Yield each test with the next one, for which its fixtures may stay."""
    return zip(items, [*items[1:], None], strict=True)


def _run_one(item: pytest.Item, after: pytest.Item | None) -> None:
    item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)


class _Only:
    """A plugin of pytest that leaves the named tests, in their order."""

    def __init__(self, tests: Sequence[str]) -> None:
        self._order = {test: index for index, test in enumerate(tests)}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leave out and sort."""
        items[:] = [item for item in items if item.nodeid in self._order]
        items.sort(key=lambda item: self._order[item.nodeid])


def _pytest(files: list[str], plugin: object) -> int:
    options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--hypothesis-seed=0"]
    # What was imported before the fork is not rewritten, and need not be.
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
    return int(pytest.main([*options, *files], plugins=[plugin]))


# --- functions that note, and functions that are replaced


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


def replace(mutant: Mutant) -> None:
    """Let the function of a module that is imported already run the code of the mutant."""
    module = sys.modules[mutant.path.removesuffix(".py").replace("/", ".")]
    function, name = _outermost(module, mutant.function)
    code = compile(mutant.text(), str(Path(mutant.path).resolve()), "exec")
    function.__code__ = next(one for one in _codes(code) if one.co_qualname == name)


def _outermost(owner: object, name: str) -> tuple[FunctionType, str]:
    """Find the function, or the one around it, behind what decorates it."""
    qualified = []
    for part in name.split("."):
        qualified.append(part)
        owner = vars(owner)[part]
        if not isinstance(owner, type):
            break
    owner = getattr(owner, "fget", None) or getattr(owner, "__func__", owner)
    owner = inspect.unwrap(owner) if callable(owner) else owner
    assert isinstance(owner, FunctionType)
    return owner, ".".join(qualified)


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)
