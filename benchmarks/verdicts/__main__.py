"""How often our verdicts are right, beside those of other tools.

    python -m benchmarks.verdicts [--full] [--data DIR] [--chart FILE] [--limit SHARE]

Simulates unchanged pull requests of 20 workloads, with 5 baseline sessions, and pull requests in
which one workload changed by 2, 3, 5 or 10 % to either side, in six ordinary regimes of noise, and
prints a table for each. In seven harsh regimes, and with `--full` on a crowded machine, ours is
judged alone. With `--data`, recorded launches are judged, too. `--chart` draws power against false
alarms. `--limit` judges ours by another limit than that of a GPU.

Without `--full` it takes a minute on two cores, uses the open part of the seeds only, looks for no
change in harsh regimes, and fails (exit code 1) when more than 1 % of the unchanged pull requests
of a regime raise an alarm, or less than 95 % of the changes by 5 % are found in the regime
`typical`. With `--full` both parts of the seeds are used.
"""

import argparse
import concurrent.futures
import functools
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from benchmarks.verdicts import chart, ours, peers, promises, recorded, simulated, tables
from benchmarks.verdicts.observed import Rule
from benchmarks.verdicts.regimes import (
    CROWDED,
    HARSH,
    OLDER_SESSIONS,
    ORDINARY,
    SESSIONS,
    Regime,
)
from benchmarks.verdicts.scores import Score
from benchmarks.verdicts.simulated import EFFECTS, HALF_OF_DEFAULT, LARGER_EFFECTS, Batch, Part
from ci_perf.judging.policy import Policy, PolicyKind, policy_of

# Pull requests per regime and part: unchanged ones, and ones for each size and direction.
QUICK = (100, 30)
FULL = (500, 250)
OURS = "ci_perf"

Scores = Mapping[str, Score]


def main(*, full: bool, data: Path | None, picture: Path | None, limit: float | None) -> int:
    """Print all tables; fail when our own rule breaks its promise."""
    start = time.monotonic()
    parts: tuple[Part, ...] = simulated.PARTS if full else ("open",)
    unchanged, changed = FULL if full else QUICK
    print(
        f"Simulated: per regime {unchanged} unchanged pull requests of {simulated.SUITE} "
        f"workloads and {changed} of each change, on each part of the seeds: {', '.join(parts)} "
        f"(seed {simulated.SEED})."
    )
    if not peers.has_pyperf():
        print("pyperf is not installed, so its row is left out: pip install pyperf")
    ours_by = policy_of(PolicyKind.TIME, limit)
    pooled: dict[str, Scores] = {}
    of_parts: dict[str, dict[str, Score]] = {}
    with concurrent.futures.ProcessPoolExecutor() as pool:
        judging = {
            regime: pool.submit(
                _simulated,
                regime,
                parts,
                unchanged,
                changed if regime in ORDINARY or full else 0,
                ours_by,
            )
            for regime in (*ORDINARY, *HARSH, *((CROWDED,) if full else ()))
        }
        for regime, scores in judging.items():
            pooled[regime.name], of_parts[regime.name] = scores.result()
            if regime in ORDINARY:
                table = tables.of_rules(list(pooled[regime.name].values()))
                print(f"\n### {regime.name}\n\n{table}", flush=True)
    drawn = {regime.name: list(pooled[regime.name].values()) for regime in ORDINARY}
    mine = {name: scores[OURS] for name, scores in pooled.items()}
    print(f"\n### What we mean to reach\n\n{tables.against_targets(mine)}")
    print(f"\n### By size of the loss\n\n{tables.by_size(mine)}")
    if full:
        print(f"\n### By part of the seeds\n\n{tables.by_part(of_parts)}")
    _recorded(data, ours_by)
    if picture:
        picture.write_text(chart.draw(drawn), encoding="utf-8")
    print(f"\n{time.monotonic() - start:.0f} s in all.")
    broken = promises.broken(mine)
    for words in broken:
        print(words, file=sys.stderr)
    return int(bool(broken))


def _rules(sessions: int, ours_by: Policy) -> dict[str, Rule]:
    """Return our rule first, then every other that can speak after this many sessions."""
    rules: dict[str, Rule] = {OURS: functools.partial(ours.judge, policy=ours_by)}
    for peer in peers.available(sessions):
        rules[peer.name] = peer.judge
    return rules


def _simulated(
    regime: Regime,
    parts: Iterable[Part],
    unchanged: int,
    changed: int,
    ours_by: Policy,
) -> tuple[Scores, dict[str, Score]]:
    """Return the score of each rule over all parts, and ours on each of them.

    In harsh regimes ours is judged alone.
    """
    is_wide = ours_by.limit > policy_of(PolicyKind.TIME).limit
    effects = LARGER_EFFECTS if is_wide else (*EFFECTS, HALF_OF_DEFAULT)
    rules = _rules(OLDER_SESSIONS + SESSIONS, ours_by)
    if regime not in ORDINARY or is_wide:
        rules = {OURS: rules[OURS]}
    scores = {name: Score(name) for name in rules}
    mine: dict[str, Score] = {}
    for part in parts:
        mine[part] = Score(part)
        for batch in _pull_requests(regime, part, unchanged, changed, effects):
            _judge(batch, rules, scores, mine[part])
    return scores, mine


def _pull_requests(
    regime: Regime, part: Part, unchanged: int, changed: int, effects: Sequence[float]
) -> Iterator[Batch]:
    yield from simulated.unchanged(regime, part, unchanged)
    for effect in effects:
        yield from simulated.changed(regime, part, changed, effect)


def _judge(
    batch: Batch, rules: Mapping[str, Rule], scores: Scores, mine: Score | None = None
) -> None:
    for name, rule in rules.items():
        judged = rule(batch.observed, batch.rows)
        scores[name].add(batch.effect, judged, batch.observed.suite)
        if name == OURS and mine:
            mine.add(batch.effect, judged, batch.observed.suite)


def _recorded(folder: Path | None, ours_by: Policy) -> None:
    """Print a table per set of recorded launches that is there."""
    if folder is None:
        print("\nRecorded launches are left out: name their folder with --data.")
        return
    _recorded_set("our own sessions", recorded.sessions(folder), _rules(3, ours_by))
    launches = folder / recorded.MLPERF
    if launches.exists():
        _recorded_set(
            "launches of MLPerf Training v4.0", recorded.mlperf(launches), _rules(1, ours_by)
        )
    else:
        print(f"\n{launches} is not there: the launches of MLPerf are left out.")


def _recorded_set(name: str, batches: Iterable[Batch], rules: Mapping[str, Rule]) -> None:
    scores = {rule: Score(rule) for rule in rules}
    for batch in batches:
        _judge(batch, rules, scores)
    print(f"\n### Recorded: {name}\n\n{tables.of_rules(list(scores.values()))}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.verdicts")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--chart", type=Path)
    parser.add_argument("--limit", type=float, metavar="SHARE")
    given = parser.parse_args()
    sys.exit(main(full=given.full, data=given.data, picture=given.chart, limit=given.limit))
