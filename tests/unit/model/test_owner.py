"""Who is told of a loss, as suite.toml says it."""

import pytest

from ci_perf.model.suite import CommandEntry, Entry, SuiteSpec

SPEC = SuiteSpec(
    owner="@org/perf",
    workloads=(
        Entry(workload="net", owner="@org/net"),
        Entry(workload="net", name="net.large", owner="@org/large"),
        Entry(workload="other"),
    ),
    commands=(CommandEntry(name="train", command="python train.py", owner="@org/train"),),
)


@pytest.mark.parametrize(
    ("workload", "owner"),
    [
        ("net.batch=4", "@org/net"),
        ("net.large.batch=4", "@org/large"),
        ("network", "@org/perf"),
        ("other", "@org/perf"),
        ("train", "@org/train"),
    ],
)
def test_the_owner_of_a_workload_is_that_of_its_entry_or_of_the_suite(workload, owner):
    assert SPEC.find_owner(workload) == owner
    assert SuiteSpec().find_owner(workload) is None
