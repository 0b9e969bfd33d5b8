"""What a check has taken, as its report says it."""

import msgspec
import pytest

from ci_perf.judging.summarise import run as summarise
from ci_perf.model.environment import GpuMachine
from ci_perf.report import provenance
from ci_perf.report.tables import join_markdown
from tests.comparisons import judged
from tests.histories import beside, in_turns, pairs
from tests.programs import a_same_program
from tests.runs import a_failed, a_measured, a_process, a_run, an_environment

ONE_S = sum(msgspec.structs.astuple(a_process(1e-3).phases))
GPU = GpuMachine(gpu_model="NVIDIA A100", gpu_count=1, gpu_memory_bytes=80 * 2**30, mig=False)


def cost(run):
    return summarise(run, label="head").cost


def note(**more):
    """The line of the report."""
    plain = a_run(a_measured("w", 1e-3, 1e-3), **more)
    run = msgspec.structs.replace(plain, duration_s=482.0)
    notes = provenance.list_notes(judged(run, run))
    (line,) = [text for each in notes if (text := join_markdown([each])).startswith("Cost: ")]
    return line.strip()


def test_every_launch_of_both_sides_is_counted_and_no_launch_of_an_earlier_run():
    alone = a_run(a_measured("w", 1e-3, 1e-3), a_failed("crashed"))
    both = in_turns(alone, pairs(1.0, count=3))

    assert cost(alone).launches == 2
    assert cost(alone).launched_s == pytest.approx(2 * ONE_S)
    assert cost(both).launches == 8
    assert cost(both).launched_s == pytest.approx(8 * ONE_S, rel=0.1)


def test_sides_that_are_alive_at_once_take_the_machine_once():
    run = a_run(a_measured("w", 1e-3), **beside(1.0))
    apart = cost(run).launched_s - ONE_S
    resident = [msgspec.structs.replace(pair, resident=True) for pair in run.paired[0].pairs]
    paired = msgspec.structs.replace(run.paired[0], pairs=tuple(resident))

    together = cost(msgspec.structs.replace(run, paired=(paired,))).launched_s - ONE_S
    assert together == pytest.approx(apart / 2, rel=0.01)


def test_each_rank_takes_a_device_of_its_own():
    run = a_run(msgspec.structs.replace(a_measured("w", 1e-3), world_size=4))

    assert cost(run).launched_s == pytest.approx(4 * ONE_S)


def test_what_is_not_proven_to_be_the_same_has_saved_nothing():
    same = (a_same_program("a"), a_same_program("b", is_proven=False))

    assert cost(a_run(same=same)).saved == 1


def test_durations_that_a_stranger_made_up_do_not_stop_a_report():
    huge = msgspec.structs.replace(a_measured("w", 1e-3, 1e-3), world_size=2**60)

    assert cost(a_run(huge)).launched_s <= 1e9


def test_the_report_says_it_in_a_line():
    said = note(waited_s=60.0, same=(a_same_program("a"), a_same_program("b")))

    assert said.startswith("Cost: ")
    assert said.endswith(
        " in 2 launches, 8 min 2 s of the machine, 1 min of waiting; at least 2 launches saved by "
        "the same program."
    )
    assert note().endswith(" in 2 launches, 8 min 2 s of the machine.")


def test_seconds_of_a_gpu_are_called_so():
    assert " GPU second" in note(environment=an_environment(hard=GPU))
    assert " GPU second" not in note()
