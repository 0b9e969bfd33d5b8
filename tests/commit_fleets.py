"""Fleets whose nodes answer for commits as they are told, without measuring anything."""

import json
import sys
from pathlib import Path

import msgspec

from ci_perf.gate.commit_units import CommitFleet
from ci_perf.system import files
from tests import step_profiles
from tests.histories import beside
from tests.runs import STEADY, a_measured, a_run

_NODE = Path(__file__).parent / "fakes/commit_node.py"
# What the nodes of a bisect answer: a commit beside the known-good one, by pairs.
RATIOS = {"fast": 1.0, "slow": 1.3}
# And "profiled": slow, and what a step of both sides does.


def a_fleet(folder, *, nodes=3, resume=False, extra=""):
    """Return a fleet of slots of this machine, whose nodes read FOLDER/answers.json."""
    table = folder / "fleet.toml"
    table.write_text(f"[class.cpu]\nnodes = {nodes}\n{extra}")
    return CommitFleet(engine="local", nodes=table, folder=folder / "fleet", resume=resume)


def prepare(folder, answers, monkeypatch):
    """Have every node of this process answer by commit: a word, or "broken", "lost", "hangs"."""
    folder.mkdir(exist_ok=True)
    answer(folder, answers)
    for word, ratio in RATIOS.items():
        files.write(folder / f"{word}.json", _paired(ratio))
    profiles = step_profiles.both(step_profiles.a_step(), step_profiles.a_step(), workload="w")
    run = msgspec.structs.replace(_paired(RATIOS["slow"]), profiled=(profiles,))
    files.write(folder / "profiled.json", run)
    files.write(folder / "steady.json", a_run(a_measured("w", *STEADY)))
    python = folder / "python"
    python.write_text(
        f'#!/bin/sh\nif [ "$3" = ci_perf ]; then exec {sys.executable} {_NODE} {folder} "$@"; fi\n'
        f'exec {sys.executable} "$@"\n'
    )
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))


def _paired(ratio):
    return a_run(a_measured("w", 1e-3), **beside(ratio, workload="w"))


def answer(folder, answers):
    """Say what the nodes answer from now on."""
    (folder / "answers.json").write_text(json.dumps(answers))


def launched(folder):
    """Return the commit, its base, the process and what was asked of every attempt, in order."""
    path = folder / "launched"
    lines = path.read_text().splitlines() if path.exists() else []
    return [line.split(maxsplit=3) for line in lines]
