"""Histories of a branch as pages show them."""

import random

from tests.features.history.branch_histories import (
    a_branch_history,
    a_change,
    a_commit,
    a_line,
    a_workload_history,
    skipped,
)

MACHINES = ("cpu-amd-epyc-2-cores", "nvidia-h200")
HOSTILE = "</script><img src=x onerror=alert(1)>\"'\u202e" + "A" * 200
_MOVES = {12: 1.09, 26: 0.9, 34: 1.12}


def _launches(number, rng):
    level = 0.04
    for place in range(number):
        level *= _MOVES.get(place, 1.0)
        session = 1 + rng.gauss(0, 0.012)
        yield [
            {
                "step_time_s": level * (session + rng.gauss(0, 0.008)),
                "step_p95_s": level * 1.2 * (session + rng.gauss(0, 0.02)),
                "graph_breaks": 2.0 + (place >= 28),
                "peak_allocated_bytes": 2.0**30,
            }
            for _ in range(5)
        ]


def _changes(start, accepted):
    level = start
    for place, ratio in _MOVES.items():
        yield a_change(place, level, level * ratio, accepted=place in accepted)
        level *= ratio


def _workload(number=40, **more):
    lines = [
        a_line(*_changes(0.04, {12, 26}), centre=0.0439, trend=1.02, has_drifted=True),
        a_line(*_changes(0.048, {}), metric="step_p95_s", centre=0.053),
        a_line(a_change(28, 2, 3), metric="graph_breaks", centre=3, spread=None),
        a_line(metric="peak_allocated_bytes", centre=2.0**30, spread=None),
    ]
    if number < max(_MOVES):
        lines = [a_line(), a_line(metric="step_p95_s", centre=0.05)]
    return a_workload_history(*_launches(number, random.Random(1)), lines=lines, **more)


def one_session():
    return a_branch_history(_workload(1))


def forty_sessions():
    url = "https://github.com/o/r"
    return a_branch_history(_workload(workload="train_classifier"), repository_url=url)


def two_machines():
    workloads = [
        _workload(workload=name, machine=machine)
        for machine in MACHINES
        for name in ("embed_images", "train_classifier")
    ]
    return a_branch_history(*workloads, is_shallow=True, skipped=(skipped(),))


def removed_and_old():
    commits = tuple(a_commit(place, age_days=400) for place in range(40))
    return a_branch_history(_workload(removed=39), commits=commits)


def hostile_names():
    commits = tuple(a_commit(place, author=HOSTILE, title=HOSTILE) for place in range(40))
    workload = _workload(machine=HOSTILE, workload="w" * 150, suite="s" * 150)
    return a_branch_history(workload, ref=HOSTILE, commits=commits, skipped=(skipped(HOSTILE),))


ALL = (one_session, forty_sessions, two_machines, removed_and_old, hostile_names)
