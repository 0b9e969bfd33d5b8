"""The runs that `benchmarks.canaries` draws, and what it counts as a screen that is on."""

import json

import numpy as np
import pytest

from benchmarks import canaries

QUIET = canaries.simulated(0.001, 0.001)
CROWDED = canaries.simulated(0.05, 0.08)


def random():
    return np.random.default_rng(5)


def test_a_quiet_machine_is_on_by_either_limit_until_it_becomes_slower():
    *history, head = QUIET(6, random())

    assert canaries.is_on_by_fixed_limit(history, head)
    assert not any(move.is_beyond for move in canaries.moves(history, head))
    slow = canaries.moves(history, canaries.slower(head, 0.1))
    assert {move.name for move in slow if move.is_beyond} == set(canaries.NAMES)


def test_the_history_keeps_the_screen_of_a_crowded_machine_on_where_the_fixed_limit_does_not():
    draws = random()
    runs = [CROWDED(21, draws) for _ in range(50)]
    fixed = [canaries.is_on_by_fixed_limit(run[:-1], run[-1]) for run in runs]
    own = [not any(m.is_beyond for m in canaries.moves(run[:-1], run[-1])) for run in runs]

    assert sum(fixed) < 5
    assert sum(own) > 35


def test_recorded_launches_become_runs_of_five(tmp_path):
    def launch(seconds):
        return {key: {"wall": [seconds] * 3} for key in ("canary0", "canary1")}

    launches = [launch(float(number)) for number in range(1, 12)]
    (tmp_path / "session01.json").write_text(json.dumps({"runs": launches}))

    first, second = sorted(
        canaries.recorded(tmp_path)(2, random()), key=lambda run: run["matmul before"]
    )
    assert first == {"matmul before": 1.0, "matmul between": 3.5, "matmul after": 5.0}
    assert second["matmul after"] == pytest.approx(10.0)
