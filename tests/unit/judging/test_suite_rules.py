"""The rules of base and head: none is looser than the base's."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_perf.judging import suite_rules
from ci_perf.model.suite import Limit, Limits, Protocol
from tests.plans import a_plan, a_planned

LIMITS = st.builds(
    Limit,
    relative=st.floats(0, 1),
    absolute=st.floats(0, 1e9),
    gate=st.booleans(),
)


@given(LIMITS, LIMITS, st.floats(1e-6, 1e9))
def test_no_limit_is_looser_than_that_of_the_base(base, head, value):
    found = suite_rules.stricter_limit(base, head)

    def size(limit):
        return max(limit.relative * value, limit.absolute)

    assert size(found) <= size(base)
    assert found.gate == (base.gate or head.gate)
    assert (found.relative, found.absolute) in {
        (base.relative, base.absolute),
        (head.relative, head.absolute),
    }


def test_what_the_head_tightens_counts_now():
    base, head = Limit(relative=0.1, gate=False), Limit(relative=0.02)

    assert suite_rules.stricter_limit(base, head) == head


def test_a_new_workload_is_judged_by_the_limits_of_the_base_s_suite():
    base = Limits(default={"step_time_s": Limit(relative=0.05)})
    head = Limits(default={}, workloads={"new": {"step_time_s": Limit(relative=9.0, gate=False)}})

    assert suite_rules.stricter(base, head).of("new") == base.default


def test_a_limit_that_one_side_lacks_is_that_of_the_other():
    base, head = Limit(relative=0.05), Limit(relative=0.1)

    found = suite_rules.stricter(Limits(default={"a": base}), Limits(default={"b": head}))

    assert found.default == {"a": base, "b": head}


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"parameters": {"n": 2}}, "parameters in suite.toml: {} → {'n': 2}"),
        ({"world_size": 2}, "world_size in suite.toml: 1 → 2"),
        ({"protocol": Protocol(threads=4)}, "threads in suite.toml: 1 → 4"),
        ({"protocol": Protocol(statistic="min")}, "statistic in suite.toml: median → min"),
        ({"protocol": Protocol(timed_min_s=9.0, processes=2)}, None),
    ],
)
def test_another_work_or_another_kind_of_time_does_not_compare(more, said):
    same = a_planned("w", protocol=Protocol(), parameters={})
    plans = a_plan(same), a_plan(msgspec.structs.replace(same, **more))

    assert suite_rules.other_work(*plans) == ({"w": said} if said else {})


def test_a_suite_for_another_device_compares_nothing():
    base = a_plan(a_planned("w"))

    assert list(suite_rules.other_work(base, msgspec.structs.replace(base, device="cuda"))) == ["w"]


def test_a_workload_that_the_base_does_not_have_is_no_other_work():
    assert suite_rules.other_work(a_plan(a_planned("old")), a_plan(a_planned("new"))) == {}
