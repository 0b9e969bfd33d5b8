from benchmarks.fleet_simulation import simulate
from tests.runs import a_run


def test_no_unit_is_missing_and_little_time_is_wasted():
    result = simulate(2000, 100, 0.01, seed=1, run=a_run())

    assert {ending.unit for ending in result.endings} == {f"u{number}" for number in range(2000)}
    assert len(result.endings) == 2000
    assert result.ideal_s / result.makespan_s > 0.8
    kinds = [ending.kind for ending in result.endings]
    assert kinds.count("measured") >= 1990


def test_the_same_seed_gives_the_same_makespan():
    first, second = (simulate(100, 10, 0.1, seed=3, run=a_run()) for _ in range(2))

    assert first.makespan_s == second.makespan_s
