"""What counts as the same machine, software and settings for a record."""

from pathlib import Path

import msgspec
import pytest

from ci_perf.model.suite import PlannedWorkload, Protocol, Setup
from ci_perf.same_program import proof
from tests.plans import a_plan
from tests.runs import GPU, an_environment, an_image


@pytest.fixture
def root(tmp_path):
    for name in ("base", "head"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "w.py").write_text(name)
    (tmp_path / "shipped.py").write_text("1")
    return tmp_path


def a_workload(root, **more):
    plain = {
        "id": "w",
        "file": str(root / "w.py"),
        "description": "",
        "parameters": {"n": 1},
        "protocol": Protocol(),
    }
    return PlannedWorkload(**{**plain, **more})


def digest(root, *, environment=None, python_path=(), setup="", **workload):
    return proof.digest_conditions(
        environment or an_environment(),
        a_workload(root, **workload),
        a_plan(python_path=python_path, setup=Setup(command=setup)),
        root,
    )


def test_another_checkout_has_the_same_conditions(root):
    assert digest(root / "base") == digest(root / "head")


@pytest.mark.parametrize(
    "more",
    [
        {"environment": an_environment(hard=GPU)},
        {"environment": an_environment(torch="0.0")},
        {"environment": an_environment(kernel="0.0")},
        {"environment": msgspec.structs.replace(an_environment(), image=an_image())},
        {"parameters": {"n": 2}},
        {"parameters": {"n": True}},
        {"launch": "torchrun"},
        {"world_size": 2},
        {"inputs": ("a",)},
        {"python_path": ("src",)},
        {"setup": "make"},
    ],
)
def test_what_may_change_the_path_of_a_program_counts(root, more):
    assert digest(root / "base", **more) != digest(root / "base")


def test_another_file_of_the_same_name_in_suite_toml_counts(root):
    other = {"file": str(root / "base/other.py")}

    assert digest(root / "base", **other) != digest(root / "base")


def test_a_shipped_file_counts_with_its_content(root):
    shipped = {"file": str(root / "shipped.py")}
    before = digest(root / "base", **shipped)
    assert digest(root / "head", **shipped) == before

    Path(shipped["file"]).write_text("2")

    assert digest(root / "head", **shipped) != before


CHANGED = {
    name: value + 1 if isinstance(value, int | float) else {"statistic": "min"}.get(name, "1")
    for name, value in msgspec.structs.asdict(Protocol()).items()
}


@pytest.mark.parametrize("name", CHANGED)
def test_a_setting_counts_unless_it_is_one_of_runs(root, name):
    protocol = msgspec.structs.replace(Protocol(), **{name: CHANGED[name]})
    is_same = digest(root / "base", protocol=protocol) == digest(root / "base")

    assert is_same == (name in proof.OF_RUNS)


def test_settings_that_do_not_count_exist():
    assert {*Protocol.__struct_fields__} >= proof.OF_RUNS


def test_only_a_statistic_of_the_suite_counts(root):
    least = msgspec.structs.replace(Protocol(), statistic="min")

    assert digest(root / "base", protocol=least) == digest(root / "base")
    of_suite = [
        digest(root / "base", protocol=each, own_statistic=True) for each in (least, Protocol())
    ]
    assert len({*of_suite, digest(root / "base")}) == 3
