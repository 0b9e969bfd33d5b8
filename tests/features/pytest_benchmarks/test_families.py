"""Which workloads are one at several parameters."""

import pytest

from ci_perf.features.pytest_benchmarks.collected import name_tests
from ci_perf.judging.families import note_families
from ci_perf.model.comparison import Change, Family, Verdict
from ci_perf.model.suite import find_family
from tests.comparisons import a_change, an_uncompared
from tests.histories import judged
from tests.runs import STEADY, a_measured, a_run
from tests.subjects import a_subject


def families_of(rows):
    return [row.family for row in rows if isinstance(row, Change)]


NODES = ["a.py::test_x[512-float32]", "a.py::TestY::test_y[<b>:[1].2]", "d/[q]/a.py::test_z[a::b]"]


@pytest.mark.parametrize(
    ("workload", "parameters", "family"),
    [
        ("matmul.size=256.dtype=bf16", {"size": 256, "dtype": "bf16"}, "matmul"),
        ("a.x=b.size=0.5", {"size": 0.5}, "a.x=b"),
        ("matmul.size=256", {}, ""),
        ("matmul", {"size": 256}, ""),
        ("t.test_x.1", {"node": "t.py::test_x[1]"}, "t.test_x"),
        ("t.test_x", {"node": "t.py::test_x[+]"}, ""),
        ("t.test_x", {"node": "t.py::test_x"}, ""),
        ("other.1", {"node": "t.py::test_x[1]"}, ""),
        ("x", {"node": "["}, ""),
        ("x.1", {"node": 7}, ""),
    ],
)
def test_a_family_is_what_an_id_has_before_its_parameters(workload, parameters, family):
    assert find_family(workload, parameters)[0] == family


def test_the_names_that_pytest_tests_get_have_families():
    names = name_tests([*NODES, f"a.py::test_x[{'p' * 200}]"], ["."])

    found = [find_family(name, {"node": node})[0] for node, name in names.items()]
    assert found == ["a.test_x", "a.TestY.test_y", "d.q.a.test_z", "a.test_x"]


def test_a_family_counts_all_of_its_cases_whatever_became_of_them():
    rows = [
        a_change("m.n=1", Verdict.REGRESSED, ratio=2.0),
        a_change("m.n=2"),
        an_uncompared("m.n=3", parameters={"n": 3}),
    ]
    subjects = [a_subject(workload=f"m.n={n}", parameters={"n": n}) for n in (1, 2)]

    noted = list(note_families(rows, subjects))

    assert families_of(noted) == [Family(name="m", cases=3)] * 2
    assert noted[2] is rows[2]


def test_the_only_case_has_no_family():
    subject = a_subject(workload="m.n=1", parameters={"n": 1})

    assert families_of(note_families([a_change("m.n=1")], [subject])) == [None]


def test_two_files_whose_tests_are_spelled_alike_are_no_family():
    nodes = [f"{file}.py::test_x[{n}]" for file in ("a b", "a-b") for n in (1, 2)]
    names = name_tests(nodes, ["."])
    subjects = [a_subject(workload=name, parameters={"node": node}) for node, name in names.items()]

    rows = note_families([a_change(name) for name in names.values()], subjects)

    assert families_of(rows) == [None] * 4


def test_a_comparison_names_the_family_of_cases_that_both_sides_have():
    run = a_run(*(a_measured(f"m.n={n}", *STEADY, parameters={"n": n}) for n in (1, 2)))

    comparison = judged(run, run)

    assert set(families_of(comparison.rows)) == {Family(name="m", cases=2)}
