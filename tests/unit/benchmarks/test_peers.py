"""Each rule of another tool says on hand-made launches what that tool would say."""

import numpy as np
import pytest

from benchmarks.verdicts import peers
from benchmarks.verdicts.observed import Observed

STEPS = 30
# Evenly from 0.99 to 1.01, so that the mean and the median are 1.
SPREAD = np.linspace(-0.01, 0.01, STEPS)
NOISE = SPREAD.std()
GAP = np.quantile(1 + SPREAD, 0.75) * 1.005 + 0.01


def observed(head, base=1.0, *, spread=SPREAD, history=(), in_job=None):
    """Return one workload whose launches all take `base`, those of the head `head` seconds."""

    def launches(seconds, *shape):
        return np.log(np.broadcast_to(seconds + spread, (*shape, STEPS)))

    older = [launches(seconds, 1) for seconds in history]
    return Observed(
        older=np.stack(older, axis=1) if older else np.empty((1, 0, STEPS)),
        sessions=launches(base, 1, 1, 5),
        head=launches(head, 1, 5),
        paired_base=launches(base if in_job is None else in_job, 1, 18),
        paired_head=launches(head, 1, 18),
        suite=1,
    )


def call(rule, *arguments, **keywords):
    return int(rule(observed(*arguments, **keywords))[0])


@pytest.mark.parametrize(
    ("rule", "silent", "flagged"),
    [
        (peers.github_action_benchmark, 1.99, 2.01),
        (peers.pytest_benchmark, 1.048, 1.052),
        (peers.torchbench, 1.069, 1.071),
        (peers.bencher_percentage, 1.24, 1.26),
        (lambda seen: peers.fixed_threshold(seen, 0.05), 1.049, 1.051),
        (lambda seen: peers.fixed_threshold(seen, 0.10), 1.099, 1.101),
        (peers.asv_compare, 1.09, 1.11),
        (peers.asv_continuous, 1.09, 1.11),
        # A certain change within its noise threshold is ignored.
        (peers.criterion, 1.009, 1.02),
        # Every step counts as evidence.
        (peers.welch_on_steps, 1.001, 1.003),
        (peers.nvbench, 1 + 0.9 * NOISE, 1 + 1.1 * NOISE),
        # The intervals must have a gap between them.
        (peers.nvbench_robust, GAP - 1e-6, GAP + 1e-6),
    ],
)
def test_a_threshold_is_where_the_tool_has_it(rule, silent, flagged):
    assert call(rule, silent) == 0
    assert call(rule, flagged) == 1


@pytest.mark.parametrize(
    "rule",
    [
        peers.torchbench,
        peers.nvbench,
        peers.nvbench_robust,
        peers.criterion,
        peers.welch_on_steps,
        peers.asv_compare,
        peers.asv_continuous,
        lambda seen: peers.fixed_threshold(seen, 0.10),
    ],
)
def test_what_became_faster_is_called_so_by_rules_of_two_sides(rule):
    assert call(rule, 0.80) == -1


@pytest.mark.parametrize(
    "rule",
    [peers.github_action_benchmark, peers.pytest_benchmark, peers.bencher_percentage],
)
def test_what_became_faster_is_not_spoken_of_by_rules_of_one_side(rule):
    assert call(rule, 0.30) == 0


def test_asv_is_not_convinced_by_a_large_ratio_of_few_overlapping_samples():
    wide = np.linspace(-0.5, 0.5, STEPS)

    assert call(peers.asv_compare, 1.11, spread=wide) == 0


def test_asv_continuous_looks_at_the_job_of_the_head_only():
    assert call(peers.asv_compare, 1.2, in_job=1.2) == 1
    assert call(peers.asv_continuous, 1.2, in_job=1.2) == 0


def paired(*differences):
    """Return one workload whose pairs differ by so much."""
    heads = np.repeat(np.array(differences)[None, :, None], STEPS, axis=-1)
    none = np.zeros((1, 1, STEPS))
    return Observed(none, none[None], none, np.zeros_like(heads), heads, suite=1)


@pytest.mark.parametrize(
    ("differences", "expected"),
    [
        ([0.020, 0.022, 0.024] * 3, 1),
        ([-0.020, -0.022, -0.024] * 3, -1),
        ([0.016, 0.018, 0.020] * 3, 0),  # certain, and below 2 %
        ([-0.300, 0.000, 0.400] * 3, 0),  # above 2 %, and not certain
        ([0.000] * 9 + [0.500] * 9, 0),  # it looks at nine pairs
    ],
)
def test_a_paired_t_test_wants_certainty_and_two_percent(differences, expected):
    random = np.random.default_rng(5)
    seen = paired(*(np.array(differences) + 1e-5 * random.standard_normal(len(differences))))

    assert int(peers.paired_t_test(seen)[0]) == expected


def test_bencher_sets_its_limit_by_the_spread_of_the_history():
    history = [0.99, 1.01] * 14 + [1.0]
    numbers = np.array([*history, 1.0])
    reach = 2.462021 * numbers.std(ddof=1) * np.sqrt(1 + 1 / 30)  # t of 0.99 and 29 df

    assert call(peers.bencher_t_test, 1 + 0.99 * reach, history=history) == 0
    assert call(peers.bencher_t_test, 1 + 1.01 * reach, history=history) == 1


def test_bencher_is_silent_where_the_history_never_varied():
    assert call(peers.bencher_t_test, 2.0, history=[1.0] * 29, spread=np.zeros(STEPS)) == 0


def test_rustc_perf_compares_with_how_much_commits_usually_differ():
    # The changes from commit to commit are one percent, give or take: Q3 + 3 IQR lies just above.
    history = [1.0, 1.01] * 14 + [1.0]
    none = np.zeros(STEPS)

    assert call(peers.rustc_perf, 1.0099, history=history, spread=none) == 0
    assert call(peers.rustc_perf, 1.011, history=history, spread=none) == 1
    assert call(peers.rustc_perf, 0.98, history=history, spread=none) == -1


def test_pyperf_itself_finds_a_large_change_and_not_a_tiny_one():
    assert call(peers.pyperf, 1.05) == 1
    assert call(peers.pyperf, 0.95) == -1
    assert call(peers.pyperf, 1.0001) == 0


def test_a_peer_answers_for_the_rows_that_it_is_asked_about():
    calls = peers.PEERS[0].judge(observed(3.0), [0, 0])

    assert list(calls.calls) == [1, 1]
    assert list(calls.launches) == [1.0, 1.0]


def test_rules_that_need_a_history_are_left_out_where_there_is_none():
    names = {peer.name for peer in peers.available(1)}

    assert "rustc-perf" not in names
    assert "Bencher, t-test 0.99" not in names
    assert "TorchBench, 7 %" in names


def test_every_peer_names_its_source_and_no_two_share_a_name():
    assert all(peer.source for peer in peers.PEERS)
    assert len({peer.name for peer in peers.PEERS}) == len(peers.PEERS)
