"""What a plan for several nodes must not say: nobody could tell who measures what."""

import msgspec
import pytest

from ci_perf.errors import InvalidFileError
from ci_perf.model import codec
from ci_perf.model.run import Source
from ci_perf.model.shards import WorkPlan
from tests.work_plans import a_unit, a_work_plan

OTHER = Source(commit="0" * 40, branch="main", dirty=False)


def test_a_plan_is_read_as_it_was_written():
    plan = a_work_plan(a_unit("a", "b", id="1-of-2"), a_unit("c", id="2-of-2"))

    assert codec.decode(codec.encode(plan), WorkPlan, name="plan.json") == plan


def test_a_class_of_machines_measures_every_workload_of_its_own():
    plan = a_work_plan(
        a_unit("a", "b", id="h100", machine_class="h100"), a_unit("a", id="l4", machine_class="l4")
    )

    assert plan.classes() == ("h100", "l4")
    assert [list(plan.workloads(name)) for name in plan.classes()] == [["a", "b"], ["a"]]


@pytest.mark.parametrize(
    ("units", "message"),
    [
        ([a_unit("a", id="x"), a_unit("b", id="x")], "unit 'x' appears twice"),
        ([a_unit("a", id="x"), a_unit("a", id="y")], "workload 'a' is in two units"),
        ([a_unit("a", suite="standard")], "expected suite 'smoke', found 'standard'"),
        ([a_unit("a", source=OTHER)], "expected source"),
        ([a_unit("a", against="main")], "expected against ''"),
        ([], "length >= 1"),
    ],
)
def test_a_plan_that_leaves_open_who_measures_is_refused(units, message):
    document = msgspec.json.decode(codec.encode(a_work_plan()))
    document["units"] = [msgspec.json.decode(codec.encode(unit)) for unit in units]

    with pytest.raises(InvalidFileError, match=message):
        codec.decode(msgspec.json.encode(document), WorkPlan, name="plan.json")


def test_a_unit_measures_a_workload_once_and_at_least_one():
    with pytest.raises(ValueError, match="workload 'a' appears twice"):
        a_unit("a", "a")
    document = msgspec.json.decode(codec.encode(a_unit("a"))) | {"workloads": []}
    with pytest.raises(InvalidFileError, match="length >= 1"):
        codec.decode(msgspec.json.encode(document), type(a_unit("a")), name="unit.json")


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"suspected": {"b": ("step_time_s",)}, "suspects": 1}, "each workload of the unit"),
        ({"suspected": {"a": ("step_time_s",)}, "suspects": 1, "against": ""}, "the base of the"),
        ({"suspected": {"a": ("step_time_s",)}, "suspects": 0}, "at least the suspected metrics"),
    ],
)
def test_a_unit_of_pairs_that_does_not_agree_with_itself_is_refused(more, message):
    with pytest.raises(ValueError, match=message):
        a_unit("a", **{"against": "main", **more})
