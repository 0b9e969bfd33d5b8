"""Launches that were really made: our sessions, and the public ones of MLPerf Training."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.verdicts.observed import Array, Observed
from benchmarks.verdicts.regimes import LAUNCHES, PAIRS
from benchmarks.verdicts.simulated import EFFECTS, SUITE, Batch

SEED = 409
# Our harness ran, in each cycle and in random order, the base twice and three slower variants.
VARIANTS = {"A": 0.0, "B2": 0.02, "B5": 0.05, "B10": 0.10}
# From one window to the next, in cycles; windows overlap.
STRIDE = 2
# Blocks of a launch of MLPerf: its last ones, so that its start does not count.
BLOCKS = 12
# Systems with fewer launches are left out.
LEAST_LAUNCHES = 10
MLPERF = "mlperf.json.gz"
MLPERF_PULL_REQUESTS = 100


def sessions(folder: Path) -> Iterator[Batch]:
    """Yield windows of each session of `folder`, judged against the other sessions.

    Raises ValueError when fewer than two sessions are there.
    """
    recorded = [_cycles(path) for path in sorted(folder.glob("session*.json"))]
    if len(recorded) < 2:
        raise ValueError(
            f"{folder}: expected at least 2 files session*.json, found {len(recorded)}"
        )
    random = np.random.default_rng(SEED)
    for variant, effect in VARIANTS.items():
        for place, head in enumerate(recorded):
            others = recorded[:place] + recorded[place + 1 :]
            for start in range(0, len(head) - LAUNCHES - PAIRS + 1, STRIDE):
                observed = _window(head[start:], others, variant, random)
                yield Batch(effect, observed, np.arange(len(observed)))


def _cycles(path: Path) -> list[dict[str, list[Array]]]:
    """Return, per cycle and variant, its launches as logs of seconds [workloads, steps]."""
    cycles: dict[int, dict[str, list[Array]]] = {}
    for run in json.loads(path.read_text(encoding="utf-8"))["runs"]:
        steps = np.log([run["w"][workload]["wall"] for workload in sorted(run["w"])])
        cycles.setdefault(run["cycle"], {}).setdefault(run["variant"], []).append(steps)
    whole = {name: 2 if name == "A" else 1 for name in VARIANTS}
    return [
        cycle
        for _, cycle in sorted(cycles.items())
        if {name: len(launches) for name, launches in cycle.items()} == whole
    ]


def _window(
    head: list[dict[str, list[Array]]],
    others: list[list[dict[str, list[Array]]]],
    variant: str,
    random: np.random.Generator,
) -> Observed:
    """Take the head's launches from five cycles, the pairs from those after them."""
    baseline = []
    for session in others:
        first = int(random.integers(0, len(session) - LAUNCHES + 1))
        baseline.append([cycle["A"][0] for cycle in session[first : first + LAUNCHES]])
    turns = [_turn(cycle, variant, i) for i, cycle in enumerate(head[LAUNCHES:][:PAIRS])]
    sessions = np.moveaxis(np.array(baseline), 2, 0)
    return Observed(
        older=np.empty((len(sessions), 0, sessions.shape[-1])),
        sessions=sessions,
        head=np.stack([cycle[variant][-1] for cycle in head[:LAUNCHES]], axis=1),
        paired_base=np.stack([base for base, _ in turns], axis=1),
        paired_head=np.stack([changed for _, changed in turns], axis=1),
        suite=len(sessions),
    )


def _turn(cycle: dict[str, list[Array]], variant: str, place: int) -> tuple[Array, Array]:
    """Return a launch of the base and one of the variant, of the same cycle."""
    base, again = cycle["A"][place % 2], cycle["A"][1 - place % 2]
    return base, again if variant == "A" else cycle[variant][0]


def mlperf(path: Path) -> Iterator[Batch]:
    """Yield pull requests of twenty systems each; their launches are drawn at random.

    Base and head are drawn from the same launches of a system, with replacement, so that nothing
    has changed is exactly true. That hides rare launches, and there is no session effect, which
    flatters whoever compares with a stored number.
    """
    streams = _streams(path)
    random = np.random.default_rng(SEED)
    for effect in (0.0, *EFFECTS):
        for number in range(MLPERF_PULL_REQUESTS):
            chosen = random.choice(len(streams), SUITE, replace=False)
            rows = np.array([number % SUITE]) if effect else np.arange(SUITE)
            changes = np.zeros((SUITE, 1, 1))
            changes[rows] = np.log1p(effect)
            yield Batch(effect, _drawn([streams[i] for i in chosen], changes, random), rows)


def _streams(path: Path) -> list[Array]:
    """Return logs of seconds per item [launches, blocks] of each system with enough of both."""
    systems: dict[str, list[dict[str, Any]]] = json.loads(gzip.decompress(path.read_bytes()))
    streams = []
    for _, launches in sorted(systems.items()):
        blocks = [launch["thr"][-BLOCKS:] for launch in launches if len(launch["thr"]) >= BLOCKS]
        if len(blocks) >= LEAST_LAUNCHES:
            streams.append(-np.log(np.array(blocks, dtype=np.float64)))
    if len(streams) < SUITE:
        raise ValueError(f"{path}: expected at least {SUITE} systems, found {len(streams)}")
    return streams


def _drawn(streams: list[Array], changes: Array, random: np.random.Generator) -> Observed:
    def draw(launches: int) -> Array:
        return np.stack([s[random.integers(0, len(s), launches)] for s in streams])

    return Observed(
        older=np.empty((len(streams), 0, BLOCKS)),
        sessions=draw(LAUNCHES)[:, None],
        head=draw(LAUNCHES) + changes,
        paired_base=draw(PAIRS),
        paired_head=draw(PAIRS) + changes,
        suite=len(streams),
    )
