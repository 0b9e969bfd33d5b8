"""Two waves in one command: real agents in the slots of this machine, and made-up measuring."""

import os
import shlex
import signal
import sys
import threading
from pathlib import Path

import msgspec
import pytest

from ci_perf.baselines.accept import Mode
from ci_perf.errors import UsageError
from ci_perf.gate import fleet
from ci_perf.gate.fleet import FleetRunOptions
from ci_perf.gate.shards import ShardOptions
from ci_perf.model.comparison import Verdict
from ci_perf.model.fleet import Endings
from ci_perf.model.run import Run
from ci_perf.model.shards import WorkPlan
from ci_perf.system import files
from tests import repositories
from tests.accepting import accepted
from tests.comparisons import an_interleaved
from tests.histories import DAYS, in_turns, pairs, row_of, scaled
from tests.processes import wait_until
from tests.projects import Project
from tests.runs import STEADY, a_measured, a_run, an_environment

MEASURE = Path(__file__).parents[2] / "fakes/fleet_measure.py"
NAMES = ("calm", "slow", "noisy", "quiet")
ONE_CLASS = "[class.cpu]\nnodes = 2\n"
# A Python that measures nothing, and runs an agent as any other does.
PYTHON = """#!/bin/sh
case "$*" in *" run --unit "*) exec {real} {measure} "$@";; esac
exec {real} "$@"
"""


class Waves:
    """A repository with a history of four workloads, and what nodes will measure of its head."""

    def __init__(self, folder, fleet_toml=ONE_CLASS):
        self.folder = folder
        git = repositories.init(folder / "project")
        self.git, self.root = git, git.root
        project = Project(git.root)
        for name in NAMES:
            project.workload(name)
        project.suite(*NAMES, device="cpu")
        for number, day in enumerate(DAYS):
            heads = [a_measured(name, *scaled(STEADY, day)) for name in NAMES]
            run = a_run(*heads, id=f"day-{number}", environment=an_environment(node=""))
            accepted(git.root / "baselines", run, mode=Mode.APPEND)
        git.commit()
        git.ask("switch", "--quiet", "--create", "branch")
        (git.root / "README.md").write_text("a change\n")
        self.commit = git.commit()
        (folder / "fleet.toml").write_text(fleet_toml)

    def measured(self, kind="screen", pairs_of=(), machine_class="", **factors):
        """Say what nodes will find: heads that take so many times as long, and their pairs."""
        heads = [a_measured(n, *scaled(STEADY, factors.get(n, 1.0))) for n in NAMES]
        run = a_run(*heads, commit=self.commit, interleaved=an_interleaved(stopped="budget"))
        for name in pairs_of:
            run = in_turns(run, pairs(factors.get(name, 1.0)), workload=name, pairs=18)
        suffix = f".{machine_class}" if machine_class else ""
        files.write(self.folder / f"{kind}{suffix}.json", run)
        return self

    def options(self, **more):
        sharding = ShardOptions(
            root=self.root,
            workloads=self.root / "workloads",
            baselines=self.root / "baselines",
            shards=more.pop("shards", 2),
            against="main",
        )
        return FleetRunOptions(
            sharding=sharding,
            engine="local",
            nodes=self.folder / "fleet.toml",
            folder=self.folder / "fleet",
            **more,
        )

    def run(self, **more):
        lines = []
        return fleet.run(self.options(**more), notify=lines.append), lines

    def endings(self):
        written = files.read(self.folder / "fleet/endings.json", Endings)
        return {ending.unit: ending.kind for ending in written.endings}

    def attempts(self, wave):
        return sorted(path.name for path in (self.folder / "fleet" / wave).glob("attempts/*/*"))


@pytest.fixture
def waves(tmp_path, monkeypatch):
    python = tmp_path / "python"
    python.write_text(
        PYTHON.format(real=shlex.quote(sys.executable), measure=shlex.quote(str(MEASURE)))
    )
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    return Waves(tmp_path).measured(slow=1.3, noisy=1.08)


def test_the_suspects_of_all_units_and_no_others_get_pairs(waves):
    waves.measured("pairs", pairs_of=("slow", "noisy"), slow=1.3)

    verdict, lines = waves.run(run_options=("--budget", "5m"))

    (comparison,) = verdict.comparisons.values()
    assert verdict.exit_code == 1
    assert row_of(comparison, workload="slow").verdict is Verdict.REGRESSED
    assert row_of(comparison, workload="noisy").verdict is Verdict.UNCHANGED
    second = files.read(waves.folder / "fleet/pairs/plan.json", WorkPlan)
    assert {name for unit in second.units for name in unit.workloads} == {"slow", "noisy"}
    assert len({unit.suspects for unit in second.units}) == 1
    assert waves.endings() == dict.fromkeys(
        ("1-of-2", "2-of-2", "pairs-1-of-2", "pairs-2-of-2"), "measured"
    )
    assert "second wave: 2 workloads in 2 units" in lines
    said = {
        wave: {
            path.read_text().partition('"--budget", "0s"')[1] != ""
            for path in (waves.folder / "fleet" / wave).glob("attempts/*/*/arguments.json")
        }
        for wave in ("screen", "pairs")
    }
    assert said == {"screen": {True}, "pairs": {False}}


def test_where_nothing_is_suspicious_there_is_no_second_wave(waves):
    waves.measured()

    verdict, lines = waves.run()

    assert verdict.exit_code == 0
    assert "no workload needs pairs of base and head: there is no second wave" in lines
    assert waves.endings() == {"1-of-2": "measured", "2-of-2": "measured"}
    assert not (waves.folder / "fleet/pairs").exists()


@pytest.mark.parametrize("more", [{"shards": 1}, {"budget_s": 0.0}])
def test_one_wave_is_enough_for_one_unit_or_without_pairs(waves, more):
    waves.run(**more)

    assert not (waves.folder / "fleet/screen").exists()
    assert not (waves.folder / "fleet/pairs").exists()


def test_what_began_in_one_wave_does_not_go_on_in_two(waves):
    waves.run(one_wave=True)

    with pytest.raises(UsageError, match="found that of a fleet run in one wave"):
        waves.run(resume=True)


def test_a_plan_of_another_commit_is_refused_before_its_units_fail(waves):
    waves.run(one_wave=True)
    kept, journal = (waves.folder / "fleet" / name for name in ("plan.json", "journal.jsonl"))
    before = journal.read_bytes()
    (waves.root / "later").touch()
    waves.git.commit()

    for more in ({"resume": True}, {"plan": kept}):
        with pytest.raises(UsageError, match=f"plan.json: .* found one of '{waves.commit}'; check"):
            waves.run(one_wave=True, **more)
    assert journal.read_bytes() == before


def test_nothing_is_planned_where_fleet_toml_does_not_fit_the_engine(waves):
    (waves.folder / "fleet.toml").write_text(f'{ONE_CLASS}select = "0"\n')

    with pytest.raises(UsageError, match=r"fleet.toml: \[class.cpu\]: expected a CUDA device"):
        waves.run()
    assert not (waves.folder / "fleet").exists()


UNITS = {"screen": ("1-of-2", "2-of-2"), "pairs": ("pairs-1-of-2", "pairs-2-of-2")}


@pytest.mark.parametrize(
    ("wave", "kinds", "lost"),
    [
        ("screen", dict.fromkeys(UNITS["screen"], "cancelled"), {*NAMES}),
        (
            "pairs",
            dict.fromkeys(UNITS["screen"], "measured") | dict.fromkeys(UNITS["pairs"], "cancelled"),
            {"slow", "noisy"},
        ),
    ],
)
def test_a_wave_that_is_interrupted_goes_on_where_it_was(waves, wave, kinds, lost):
    (waves.folder / f"hang.{wave}").touch()
    waves.measured("pairs", pairs_of=("slow", "noisy"), slow=1.3)
    interrupt = threading.Thread(target=interrupt_once, args=[waves.folder / "hangs"])
    interrupt.start()

    with pytest.raises(KeyboardInterrupt):
        waves.run()
    interrupt.join()

    assert waves.endings() == kinds
    partial = files.read(waves.folder / "fleet/run.json", Run)
    assert {failed.workload for failed in partial.failed} == lost
    measured = waves.attempts("screen")

    (waves.folder / f"hang.{wave}").unlink()
    verdict, _ = waves.run(resume=True)

    assert verdict.exit_code == 1
    assert waves.endings() == dict.fromkeys((*UNITS["screen"], *UNITS["pairs"]), "measured")
    if wave == "pairs":
        assert waves.attempts("screen") == measured, "what was screened was screened again"
    with pytest.raises(UsageError, match="found that of a fleet run in two waves"):
        waves.run(resume=True, one_wave=True)


def interrupt_once(sign):
    wait_until(sign.exists)
    os.kill(os.getpid(), signal.SIGINT)


def test_a_node_that_launches_pairs_while_others_screen_is_refused_alone(waves):
    run = files.read(waves.folder / "screen.json", Run)
    files.write(waves.folder / "screen.json", in_turns(run, pairs(1.3), workload="slow", pairs=18))

    verdict, _ = waves.run()

    assert verdict.exit_code == 3
    (whole,) = verdict.runs.values()
    failed = files.read(whole, Run).failed
    assert {each.workload for each in failed} == {*NAMES}
    assert "expected no pairs in the first of two waves, found 18" in failed[0].reason


def test_each_class_has_its_own_suspects(tmp_path, waves):
    (tmp_path / "fleet.toml").write_text("[class.a]\nnodes = 2\n[class.b]\nnodes = 2\n")
    waves.measured(machine_class="b")
    waves.measured("pairs", pairs_of=("slow", "noisy"), slow=1.3)

    verdict, _ = waves.run()

    assert {name: each.exit_code for name, each in verdict.comparisons.items()} == {"a": 1, "b": 0}
    second = files.read(waves.folder / "fleet/pairs/plan.json", WorkPlan)
    assert {unit.machine_class for unit in second.units} == {"a"}
    assert len(waves.endings()) == 6
    assert msgspec.json.decode((tmp_path / "fleet/run.b.json").read_bytes())["paired"] == []
