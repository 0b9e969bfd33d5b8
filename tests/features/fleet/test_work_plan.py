"""What a plan for several nodes must not say: nobody could tell who measures what."""

import msgspec
import pytest

from ci_perf.errors import InvalidFileError
from ci_perf.features.fleet.work_plan import WorkPlan
from ci_perf.model import codec
from tests.features.fleet.work_plans import a_unit, a_work_plan


def test_a_class_of_machines_measures_every_workload_of_its_own():
    plan = a_work_plan(
        a_unit("a", "b", id="h100", machine_class="h100"), a_unit("a", id="l4", machine_class="l4")
    )

    assert plan.classes() == ("h100", "l4")
    assert [list(plan.workloads(name)) for name in plan.classes()] == [["a", "b"], ["a"]]
    assert codec.decode(codec.encode(plan), WorkPlan, name="plan.json") == plan


@pytest.mark.parametrize(
    ("units", "message"),
    [
        ([a_unit("a", id="x"), a_unit("b", id="x")], "unit 'x' appears twice"),
        ([a_unit("a", id="x"), a_unit("a", id="y")], "workload 'a' is planned twice"),
        ([a_unit("a", "a")], "workload 'a' is planned twice"),
        ([a_unit()], "length >= 1"),
        ([], "length >= 1"),
    ],
)
def test_a_plan_that_leaves_open_who_measures_is_refused(units, message):
    document = msgspec.json.decode(codec.encode(a_work_plan()))
    document["units"] = [msgspec.json.decode(codec.encode(unit)) for unit in units]

    with pytest.raises(InvalidFileError, match=message):
        codec.decode(msgspec.json.encode(document), WorkPlan, name="plan.json")
