"""What other tools would say, each at its defaults or at the example of its own documentation.

Restated from their sources, read in 2026, because they are scripts, servers or of other languages;
`pyperf` is the real package. Not rebuilt: criterion's bootstrap (a mean of 30 steps is close to
normal, so Student's interval stands for it) and the clock frequencies that nvbench's newer rule
also asks for. Each tool is given what it works on: one launch, several, or the history.
"""

import importlib
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from benchmarks.verdicts.observed import Array, Calls, Judged, Observed, Rows

# rustc-perf looks at the changes between this many commits.
RUSTC_COMMITS = 30
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Peer:
    """A rule of another tool, and where it is written."""

    name: str
    source: str
    calls: Callable[[Observed], Calls]
    # Launches of the head's job that it takes to judge one workload.
    launches: int
    # Sessions before the head without which it says nothing.
    sessions: int = 1

    def judge(self, observed: Observed, rows: Rows) -> Judged:
        """As any rule; each workload is judged alone."""
        calls = self.calls(observed.only(rows))
        return Judged(calls, np.full(len(calls), float(self.launches)))


def _sided(flagged: Bools, difference: Array) -> Calls:
    return np.where(flagged, np.sign(difference), 0).astype(np.int8)


def _slower(flagged: Bools) -> Calls:
    """Return the calls of a rule that never speaks of what became faster."""
    return flagged.astype(np.int8)


def _one_launch(observed: Observed) -> tuple[Array, Array]:
    """Return seconds [n, steps] of one launch of the newest session, and of one of the head."""
    return np.exp(observed.sessions[:, -1, 0]), np.exp(observed.head[:, 0])


def _launches(observed: Observed) -> tuple[Array, Array]:
    """Return seconds [n, launches, steps] of the newest session, and of the head."""
    return np.exp(observed.sessions[:, -1]), np.exp(observed.head)


def _history(observed: Observed, number: Callable[[Array], Array]) -> tuple[Array, Array]:
    """Return one number per session [n, sessions], of one launch each, and the head's [n]."""
    launches = np.concatenate([observed.older, observed.sessions[:, :, 0]], axis=1)
    return number(np.exp(launches)), number(np.exp(observed.head[:, 0]))


def _mean(seconds: Array) -> Array:
    means: Array = seconds.mean(-1)
    return means


def _least(seconds: Array) -> Array:
    least: Array = seconds.min(-1)
    return least


def github_action_benchmark(observed: Observed, threshold: float = 2.0) -> Calls:
    """Alert when the number is more than `threshold` times the last one."""
    base, head = _one_launch(observed)
    return _slower(_mean(head) / _mean(base) > threshold)


def pytest_benchmark(observed: Observed, threshold: float = 0.05) -> Calls:
    """Fail when the fastest round is more than 5 % slower than in the saved run."""
    base, head = _one_launch(observed)
    return _slower(_least(head) / _least(base) - 1 > threshold)


def torchbench(observed: Observed, threshold: float = 0.07) -> Calls:
    """Report a median that moved by more than 7 %."""
    base, head = (np.median(seconds, axis=-1) for seconds in _one_launch(observed))
    change = head / base - 1
    return _sided(np.abs(change) > threshold, change)


def nvbench(observed: Observed) -> Calls:
    """Name a change that is larger than the smaller of both noises."""
    base, head = _one_launch(observed)
    change = _mean(head) / _mean(base) - 1
    noise = np.minimum(base.std(-1) / _mean(base), head.std(-1) / _mean(head))
    return _sided(np.abs(change) > noise, change)


def nvbench_robust(observed: Observed, gap: float = 0.005) -> Calls:
    """Ask that the intervals from the minimum to the third quartile lie 0.5 % apart."""
    base, head = _one_launch(observed)
    top_of_base, top_of_head = (np.quantile(seconds, 0.75, axis=-1) for seconds in (base, head))
    slower = (_least(head) - top_of_base) / top_of_base >= gap
    faster = (_least(base) - top_of_head) / top_of_head >= gap
    return np.where(slower, 1, np.where(faster, -1, 0)).astype(np.int8)


def criterion(observed: Observed, noise: float = 0.01) -> Calls:
    """Ask for p < 0.05, and an interval of the mean's change that lies beyond 1 %."""
    base, head = _one_launch(observed)
    test = stats.ttest_ind(head, base, axis=-1, equal_var=False)
    interval = test.confidence_interval(0.95)
    mean = _mean(base)
    calls = np.where(interval.low / mean > noise, 1, np.where(interval.high / mean < -noise, -1, 0))
    return np.where(test.pvalue < 0.05, calls, 0).astype(np.int8)


def welch_on_steps(observed: Observed) -> Calls:
    """Welch's t-test at 0.05, of all steps of all launches."""
    n = len(observed)
    base, head = (seconds.reshape(n, -1) for seconds in _launches(observed))
    test = stats.ttest_ind(head, base, axis=-1, equal_var=False)
    return _sided(test.pvalue < 0.05, test.statistic)


def asv(base: Array, head: Array, factor: float = 1.1, p: float = 0.002) -> Calls:
    """Mann-Whitney's U at 0.002 over the samples [n, samples], and medians 1.1 apart."""
    ratio = np.median(head, axis=-1) / np.median(base, axis=-1)
    pvalue = stats.mannwhitneyu(base, head, axis=-1, method="asymptotic").pvalue
    return _sided((pvalue < p) & ((ratio > factor) | (ratio < 1 / factor)), ratio - 1)


def asv_compare(observed: Observed) -> Calls:
    """`asv compare` with stored results: the samples of two processes are pooled."""
    n = len(observed)
    base, head = (seconds[:, :2].reshape(n, -1) for seconds in _launches(observed))
    return asv(base, head)


def asv_continuous(observed: Observed) -> Calls:
    """`asv continuous --interleave-rounds`: the same of two launches each in the head's job."""
    n = len(observed)
    base = np.exp(observed.paired_base[:, :2]).reshape(n, -1)
    return asv(base, np.exp(observed.paired_head[:, :2]).reshape(n, -1))


def bencher_t_test(observed: Observed, boundary: float = 0.99) -> Calls:
    """Alert above Student's upper prediction limit of the history."""
    history, head = _history(observed, _mean)
    n = history.shape[1]
    deviation = history.std(-1, ddof=1) * np.sqrt(1 + 1 / n)
    limit = history.mean(-1) + stats.t.ppf(boundary, n - 1) * deviation
    # Without any variance it sets no limit.
    return _slower((deviation > 0) & (head > limit))


def bencher_percentage(observed: Observed, boundary: float = 0.25) -> Calls:
    """Alert above 1.25 times the mean of the history."""
    history, head = _history(observed, _mean)
    return _slower(head > history.mean(-1) * (1 + boundary))


def rustc_perf(observed: Observed) -> Calls:
    """Ask for more than Q3 + 3 IQR of the changes between neighbouring commits."""
    history, head = _history(observed, _least)
    change = head / history[:, -1] - 1
    steps = np.abs(np.diff(history, axis=1) / history[:, :-1])
    low, high = np.quantile(steps, [0.25, 0.75], axis=-1)
    return _sided(np.abs(change) >= high + 3 * (high - low), change)


def fixed_threshold(observed: Observed, threshold: float) -> Calls:
    """Compare the medians of the launches' medians with a fixed share."""
    base, head = (np.median(seconds, axis=(-2, -1)) for seconds in _launches(observed))
    change = head / base - 1
    return _sided(np.abs(change) > threshold, change)


def paired_t_test(observed: Observed, pairs: int = 9) -> Calls:
    """Nine interleaved pairs, p < 0.01, and a mean beyond 2 %: what a careful person might do."""
    base, head = (
        np.median(steps[:, :pairs], axis=-1)
        for steps in (observed.paired_base, observed.paired_head)
    )
    difference = head - base
    pvalue = stats.ttest_1samp(difference, 0.0, axis=-1).pvalue
    mean = difference.mean(-1)
    return _sided((pvalue < 0.01) & (np.abs(mean) > 0.02), mean)


def pyperf(observed: Observed) -> Calls:
    """`pyperf compare_to`: Student's t-test at 0.05, three values of each process pooled."""
    is_significant = importlib.import_module("pyperf._utils").is_significant
    n = len(observed)
    base, head = (_thirds(seconds).reshape(n, -1) for seconds in _launches(observed))
    flagged = [is_significant(b, h)[0] for b, h in zip(base.tolist(), head.tolist(), strict=True)]
    return _sided(np.array(flagged), _mean(head) - _mean(base))


def _thirds(seconds: Array) -> Array:
    """Return [n, launches, 3]: pyperf times three values in each process, each over many loops."""
    each = seconds.shape[-1] // 3
    return _mean(seconds[..., : 3 * each].reshape(*seconds.shape[:-1], 3, each))


PEERS = (
    Peer(
        "github-action-benchmark, 200 %",
        "github-action-benchmark, src/write.ts and action.yml: alert-threshold",
        github_action_benchmark,
        launches=1,
    ),
    Peer(
        "Bencher, t-test 0.99",
        "bencher.dev, Thresholds & Alerts; lib/bencher_boundary",
        bencher_t_test,
        launches=1,
        sessions=2,
    ),
    Peer(
        "Bencher, percentage 25 %",
        "bencher.dev, Relative Continuous Benchmarking; lib/bencher_boundary",
        bencher_percentage,
        launches=1,
    ),
    Peer(
        "pytest-benchmark, min:5%",
        "pytest-benchmark, --benchmark-compare-fail in its help; utils.py",
        pytest_benchmark,
        launches=1,
    ),
    Peer(
        "asv compare",
        "asv, asv/_stats.py and asv/commands/compare.py: p < 0.002, factor 1.1",
        asv_compare,
        launches=2,
    ),
    Peer(
        "asv continuous",
        "the same, base and head in one job with --interleave-rounds",
        asv_continuous,
        launches=4,
    ),
    Peer("pyperf compare_to", "pyperf._utils.is_significant, called", pyperf, launches=5),
    Peer(
        "nvbench_compare", "NVIDIA/nvbench, python/scripts/nvbench_compare.py", nvbench, launches=1
    ),
    Peer(
        "nvbench_compare, robust",
        "NVIDIA/nvbench, docs/nvbench_compare_robust.md",
        nvbench_robust,
        launches=1,
    ),
    Peer(
        "TorchBench, 7 %",
        "pytorch/benchmark, userbenchmark/*/regression_detector.py",
        torchbench,
        launches=1,
    ),
    Peer(
        "rustc-perf",
        "rust-lang/rustc-perf, docs/comparison-analysis.md",
        rustc_perf,
        launches=1,
        sessions=RUSTC_COMMITS,
    ),
    Peer(
        "criterion, 1 %",
        "bheisler/criterion.rs, src/lib.rs: significance_level, noise_threshold",
        criterion,
        launches=1,
    ),
    Peer("fixed 5 %", "medians of five launches", lambda o: fixed_threshold(o, 0.05), launches=5),
    Peer("fixed 10 %", "the same", lambda o: fixed_threshold(o, 0.10), launches=5),
    Peer("Welch on steps", "p < 0.05 over the steps of five launches", welch_on_steps, launches=5),
    Peer(
        "paired t-test, 9 pairs",
        "no tool: p < 0.01 and 2 %, base and head interleaved",
        paired_t_test,
        launches=18,
    ),
)


def has_pyperf() -> bool:
    """Tell whether the real pyperf can be called."""
    return importlib.util.find_spec("pyperf") is not None


def available(sessions: int) -> tuple[Peer, ...]:
    """Return those that can say something after this many sessions, with what is installed."""
    missing = () if has_pyperf() else (pyperf,)
    return tuple(peer for peer in PEERS if peer.sessions <= sessions and peer.calls not in missing)
