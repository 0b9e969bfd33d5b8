"""Numbers of a machine that was busy with other things."""

import msgspec
import pytest

from ci_perf.baselines import accept
from ci_perf.baselines.accept import Action
from ci_perf.errors import RefusedError
from tests.accepting import accepted, contents
from tests.runs import STEADY, a_measured, a_run, an_evidence


def under(*, workload="a", **host):
    """A workload whose processes saw such a host."""
    return a_measured(workload, *STEADY, evidence=an_evidence(**host))


@pytest.mark.parametrize(
    ("host", "said"),
    [
        ({"cpu_pressure": 0.93}, "tasks waited for a CPU 93% of the timed region"),
        ({"memory_pressure": 0.6}, "tasks waited for memory 60% of the timed region"),
        ({"throttled_s": 0.7, "wall_s": 1.0}, "the CPU quota took 70% of the timed region"),
    ],
)
def test_heavy_pressure_is_refused_with_how_much_and_what_to_do(root, host, said):
    run = a_run(under(**host))

    with pytest.raises(RefusedError, match=said) as refused:
        accepted(root, run)
    assert "--wait 10m" in str(refused.value)
    assert "--force" in str(refused.value)
    assert contents(root) == {}


def test_whoever_forces_it_gets_it(root):
    assert accepted(root, a_run(under(cpu_pressure=0.93)), force=True) == {"a": Action.CREATED}


def test_what_only_degrades_a_run_is_accepted(root):
    assert accepted(root, a_run(under(cpu_pressure=accept.HEAVY_PRESSURE))) == {"a": Action.CREATED}


def test_one_workload_that_keeps_the_cpus_busy_by_itself_does_not_speak_for_the_machine(root):
    loader, others = under(cpu_pressure=1.0), [under(workload=name) for name in ("b", "c")]

    assert accepted(root, a_run(loader, *others))["a"] is Action.CREATED


def test_ranks_that_wait_for_each_other_are_not_under_pressure(root):
    ranks = msgspec.structs.replace(under(cpu_pressure=0.9), world_size=2)

    assert accepted(root, a_run(ranks)) == {"a": Action.CREATED}


def test_a_process_that_could_not_see_the_pressure_leaves_it_to_the_others(root):
    seen, blind = under(cpu_pressure=0.93), under(workload="b", cpu_pressure=None)

    with pytest.raises(RefusedError, match="tasks waited for a CPU 93% of the timed region"):
        accepted(root, a_run(seen, blind))
    assert accepted(root, a_run(blind)) == {"b": Action.CREATED}


def test_where_nothing_is_written_nothing_is_refused(root):
    run = a_run(under(cpu_pressure=0.93))
    accepted(root, run, force=True)

    assert accepted(root, run) == {"a": Action.KEPT}
