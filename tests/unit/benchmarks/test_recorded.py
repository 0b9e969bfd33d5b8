"""Recorded launches become comparisons whose truth is known."""

import gzip
import json

import numpy as np
import pytest

from benchmarks.verdicts import recorded
from benchmarks.verdicts.regimes import LAUNCHES, PAIRS
from benchmarks.verdicts.simulated import SUITE

CYCLES = LAUNCHES + PAIRS
SLOWER = {"A": 1.0, "B2": 1.02, "B5": 1.05, "B10": 1.1}


def session(number, cycles=CYCLES):
    """Return a session in which a launch of cycle c takes 100 · session + c milliseconds."""
    runs = [
        {
            "cycle": cycle,
            "variant": variant,
            "w": {
                name: {"wall": [SLOWER[variant] * (100 * number + cycle)] * 30}
                for name in ("matmul", "cnn")
            },
        }
        for cycle in range(cycles)
        for variant in ("B5", "A", "B10", "A", "B2")
    ]
    return {"session": number, "runs": runs}


def write_sessions(folder, *sessions):
    for number, content in enumerate(sessions):
        (folder / f"session{number:02}.json").write_text(json.dumps(content), encoding="utf-8")


def batches(folder, effect):
    return [batch for batch in recorded.sessions(folder) if batch.effect == effect]


def test_each_session_is_judged_against_the_others(tmp_path):
    write_sessions(tmp_path, session(1), session(5), session(9))

    first, *rest = batches(tmp_path, 0.0)

    assert len(rest) == 2
    assert first.observed.sessions.shape == (2, 2, LAUNCHES, 30)
    assert np.exp(first.observed.sessions[:, 0]).min() >= 500
    assert np.exp(first.observed.head).max() < 200


def test_the_head_and_the_pairs_are_of_different_cycles(tmp_path):
    write_sessions(tmp_path, session(1), session(5))
    observed = batches(tmp_path, 0.0)[0].observed

    assert np.exp(observed.head[0, :, 0]) == pytest.approx(range(100, 105))
    assert np.exp(observed.paired_head[0, :, 0]) == pytest.approx(range(105, 123))


def test_both_launches_of_a_pair_are_of_one_cycle(tmp_path):
    write_sessions(tmp_path, session(1), session(5))
    observed = batches(tmp_path, 0.10)[0].observed

    assert observed.paired_head - observed.paired_base == pytest.approx(np.log(1.1))


def test_a_cycle_that_was_cut_short_is_left_out(tmp_path):
    cut = session(1, CYCLES + 1)
    cut["runs"] = cut["runs"][1:]
    write_sessions(tmp_path, cut, session(5))
    observed = batches(tmp_path, 0.0)[0].observed

    assert np.exp(observed.head[0, 0, 0]) == pytest.approx(101)


def test_a_folder_without_sessions_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"expected at least 2 files session\*\.json, found 0"):
        list(recorded.sessions(tmp_path))


def write_mlperf(path, systems, launches=10, blocks=14):
    random = np.random.default_rng(3)
    content = {
        f"system {number}": [
            {"thr": list(1000.0 * (number + 1) * (1 + 0.001 * random.standard_normal(blocks)))}
            for _ in range(launches)
        ]
        for number in range(systems)
    }
    path.write_bytes(gzip.compress(json.dumps(content).encode()))


def test_throughput_becomes_time_and_no_system_meets_another(tmp_path):
    path = tmp_path / recorded.MLPERF
    write_mlperf(path, systems=SUITE)
    batch = next(recorded.mlperf(path))

    apart = np.abs(batch.observed.head[:, :1] - batch.observed.sessions[:, 0])

    assert apart.max() < 0.02
    assert sorted(np.exp(-batch.observed.head[:, 0, 0]).round(-3)) == [
        1000.0 * number for number in range(1, 21)
    ]


def test_only_the_changed_system_counts_in_a_pull_request_with_a_change(tmp_path):
    path = tmp_path / recorded.MLPERF
    write_mlperf(path, systems=SUITE)
    batch = next(batch for batch in recorded.mlperf(path) if batch.effect == 0.10)
    shift = (batch.observed.paired_head - batch.observed.paired_base).mean(axis=(1, 2))

    assert list(batch.rows) == [0]
    assert shift[0] == pytest.approx(np.log(1.1), abs=0.01)
    assert np.abs(shift[1:]).max() < 0.01


def test_systems_with_few_launches_or_short_ones_are_left_out(tmp_path):
    path = tmp_path / recorded.MLPERF
    write_mlperf(path, systems=SUITE, launches=9)

    with pytest.raises(ValueError, match="expected at least 20 systems, found 0"):
        next(recorded.mlperf(path))
