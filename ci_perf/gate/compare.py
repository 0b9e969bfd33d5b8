"""A run against the committed baselines, or against another run. Measures and launches nothing."""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from ci_perf import suite
from ci_perf.baselines import layout, machine_documents, summaries
from ci_perf.errors import UsageError
from ci_perf.judge import compare, summarise
from ci_perf.judge.policy import default_limits
from ci_perf.model.comparison import Comparison
from ci_perf.model.environment import Machine
from ci_perf.model.run import Run, Source
from ci_perf.model.suite import FailOn, Limits, Tiers
from ci_perf.model.summary import Summary
from ci_perf.system import files, git


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What suite.toml, and the calibration of the machine, say of judging a suite."""

    limits: Limits
    tiers: Tiers
    fail_on: FailOn

    def of(self, fail_on: FailOn | None) -> "Rules":
        """Return the same rules with what the command line says, if it says something."""
        return dataclasses.replace(self, fail_on=fail_on or self.fail_on)


def against_baselines(run: Run, root: Path, *, label: str, rules: Rules) -> Comparison:
    """Judge `run` against the baselines of its machine and suite below `root`."""
    return _compared(committed(run, root), summarise.run(run, label=label), rules)


def against_run(
    base: Path, head: Path, folder: Path, *, fail_on: FailOn | None, notify: Callable[[str], None]
) -> Comparison:
    """Judge the run in file `head` against the run in file `base`."""
    before, after = files.read(base, Run), files.read(head, Run)
    if after.interleaved is not None and not _is_of(after.interleaved.source, before.source):
        notify(
            f"{head}: its pairs are left alone: they were launched against "
            f"{after.interleaved.source.commit}, and {base} is of {before.source.commit}"
        )
        after = msgspec.structs.replace(after, interleaved=None, paired=())
    return _compared(
        summarise.run(before, label=str(base)),
        summarise.run(after, label=str(head)),
        rules(folder, after.suite, notify=notify).of(fail_on),
    )


def _is_of(one: Source, other: Source) -> bool:
    """Whether both are surely the same code."""
    is_known = one.commit != git.UNKNOWN and not (one.dirty or other.dirty)
    return is_known and one.commit == other.commit


def check_baselines(root: Path, suite: str) -> None:
    """Find out before the work that a baseline cannot be read. Raises InvalidFileError."""
    layout.read_everything(root, suite)


def rules(
    folder: Path,
    name: str,
    baselines: Path | None = None,
    machine: Machine | None = None,
    *,
    notify: Callable[[str], None],
) -> Rules:
    """Return how FOLDER/suite.toml has this suite judged, if it knows it.

    Where it names no preset, that of the calibration of `machine` below `baselines` holds. A run
    that is looked at outside its repository is judged by the defaults.
    """
    calibrated = machine_documents.read(baselines, machine) if baselines and machine else None
    preset = calibrated.preset if calibrated else "default"
    nothing = Rules(
        limits=Limits(default=default_limits(preset)), tiers=Tiers(), fail_on="regressed"
    )
    _, where = suite.locate(name, folder)
    if not (where / "suite.toml").exists():
        notify(f"{where / 'suite.toml'}: not found; the default limits apply")
        return nothing
    try:
        found = suite.plan(folder, name, root=folder, preset=preset)
    except UsageError:
        notify(f"{folder / 'suite.toml'}: no suite {name!r}; the default limits apply")
        return nothing
    return Rules(limits=found.limits, tiers=found.tiers, fail_on=found.fail_on)


def committed(run: Run, root: Path) -> Summary:
    """Return what is committed below `root` for the machine and the suite of `run`."""
    return summaries.baselines(root, run.environment.hard, run.suite)


def _compared(base: Summary, head: Summary, rules: Rules) -> Comparison:
    return compare.compare(
        base, head, limits=rules.limits, tiers=rules.tiers, fail_on=rules.fail_on
    )
