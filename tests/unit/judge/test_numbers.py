import pytest

from ci_perf.judge import numbers
from tests.runs import a_process


@pytest.mark.parametrize(("statistic", "step_s"), [("median", 3.0), ("p25", 2.0), ("min", 1.0)])
def test_the_statistic_of_the_run_says_which_block_speaks(statistic, step_s):
    process = a_process(step_s=[5.0, 1.0, 3.0, 2.0, 40.0], statistic=statistic)

    assert numbers.of_process(process)["step_time_s"] == step_s


def test_what_a_machine_lacks_is_absent_and_not_zero():
    assert "peak_allocated_bytes" not in numbers.of_process(a_process())
