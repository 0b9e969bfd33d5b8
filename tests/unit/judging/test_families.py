"""Which rows are cases of one workload or test."""

import pytest

from ci_perf.judging.families import note_families
from ci_perf.model.comparison import Family
from tests.comparisons import a_change
from tests.subjects import a_subject


def families(names, subjects):
    """The family that the row of each workload names."""
    return [getattr(row, "family", None) for row in note_families(map(a_change, names), subjects)]


@pytest.mark.parametrize(
    ("names", "parameters", "family"),
    [
        (["m.size=1", "m.size=2"], {"size": 1}, Family(name="m", cases=2)),
        (["m.size=1", "n.size=1"], {"size": 1}, None),  # one case is no family
        (["m.size=1", "m.size=2"], {}, None),
    ],
)
def test_a_family_has_several_cases(names, parameters, family):
    subjects = [a_subject(workload=name, parameters=parameters) for name in names]

    assert families(names, subjects) == [family] * 2


def test_tests_of_two_files_that_are_spelt_alike_are_no_family():
    names = ["f.test_add.1", "f.test_add.2", "f.test_add.3"]
    files = ["f.py", "f.py", "f/__init__.py"]
    subjects = [
        a_subject(workload=name, parameters={"node": f"{file}::test_add[{name[-1]}]"})
        for name, file in zip(names, files, strict=True)
    ]

    assert families(names, subjects) == [None] * 3
    assert families(names[:2], subjects[:2]) == [Family(name="f.test_add", cases=2)] * 2
