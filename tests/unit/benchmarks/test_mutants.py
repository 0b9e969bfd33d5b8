"""Small faults: which there are, which are taken, and what counts as noticed."""

import ast
import itertools

import pytest

from benchmarks.mutants import __main__ as command
from benchmarks.mutants import faults, forks, noticing
from benchmarks.mutants.noticing import Outcome


def changes(source):
    """Return every changed source, and the function that the change lies in."""
    return [(mutant.text(), mutant.function) for mutant in faults.of("here", "a.py", source)]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a < b", ["a <= b"]),
        ("a + b", ["a - b"]),
        ("a and b", ["a or b", "b", "a"]),
        ("a or b or c", ["a and b and c", "b or c", "a or c", "a or b"]),
        ("not a", ["a"]),
        ("x = 0.01", ["x = 0.02"]),
        ("a if b else c", ["a if not b else c"]),
        ("[a for a in b if c]", ["[a for a in b]"]),
        ("if a:\n    b = c", ["if not a:\n    b = c"]),
        ("raise a", ["pass"]),
        ("a += b", ["a -= b", "pass"]),
    ],
)
def test_every_operator_makes_the_changes_that_it_promises(before, after):
    made = [text for text, _ in changes(f"{before}\n")]

    # A line that is only an expression can also be deleted.
    is_expression = isinstance(ast.parse(before).body[0], ast.Expr)
    assert made == (["pass"] if is_expression else []) + after


@pytest.mark.parametrize(
    "source",
    [
        "x: int | None",
        "x = f'{a + 1}'",
        "x = y",
        "@f(a=1)\ndef g(): ...",
        "X = Literal[1]",
    ],
)
def test_words_annotations_and_decorators_are_left_alone(source):
    assert not changes(source)


def test_a_change_knows_its_function_and_what_is_outside_of_all_has_none():
    source = "A = 1\nclass B:\n    def c(self, d=2):\n        return 3\n"

    assert [function for _, function in changes(source)] == ["", "", "B.c", "B.c"]


def test_the_file_is_whole_again_after_every_change():
    source = "def a(b, c):\n    return b < c and b + 1 > c\n"
    mutants = list(faults.of("here", "a.py", source))
    texts = [mutant.text() for mutant in mutants]

    assert len(set(texts)) == len(texts) == 8
    assert [mutant.text() for mutant in mutants] == texts


def test_a_function_notes_that_it_was_entered():
    source = '"""Text."""\nclass A:\n    def b(self):\n        """More."""\n        return 1\n'
    module = {}
    exec(compile(noticing.noting("a.py", source), "a.py", "exec"), module)
    noted = module[noticing._SET]
    noted.clear()

    assert module["A"]().b() == 1
    assert noted == {("a.py", "A.b")}
    assert (module["__doc__"], module["A"].b.__doc__) == ("Text.", "More.")


def test_a_sample_is_spread_evenly_and_the_same_for_the_same_seed():
    population = list(range(1000))
    taken = command.sample(population, 10, seed=1)

    assert taken == command.sample(population, 10, seed=1)
    assert taken != command.sample(population, 10, seed=2)
    assert {after - before for before, after in itertools.pairwise(taken)} == {100}


@pytest.mark.parametrize("area", command.AREAS, ids=lambda area: area.name)
def test_every_area_has_code_and_tests(area):
    assert all(forks.python_files([name]) for name in area.sources)
    assert forks.python_files(area.tests)


def test_a_mutant_that_takes_too_long_counts_as_noticed():
    (mutant,) = faults.of("here", "a.py", "x = 1")
    outcomes = [(mutant, outcome) for outcome in Outcome]

    assert command.table(outcomes).splitlines()[-1] == "| all | 3 | 1 | 1 | 1 | 66.7% |"


def test_short_tests_of_the_same_file_come_first_and_long_ones_only_within_the_budget():
    (mutant,) = faults.of("here", "ci_perf/a.py", "def f():\n    return x")
    entered = frozenset({("ci_perf/a.py", "f")})
    seconds = {"test_b.py::short": 0.1, "test_b.py::long": 9.0, "test_a.py::same": 0.5}
    tests = noticing.Tests(
        {**dict.fromkeys(seconds, entered), "test_c.py::other": frozenset()},
        {**seconds, "test_c.py::other": 0.1},
    )

    ordered = ["test_a.py::same", "test_b.py::short", "test_b.py::long"]
    assert tests.concerned(mutant, budget_s=10.0) == ordered
    assert tests.concerned(mutant, budget_s=5.0) == ordered[:2]
    assert tests.concerned(mutant, budget_s=0.0) == ordered[:1]
