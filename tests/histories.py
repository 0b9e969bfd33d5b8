"""Builders of what the judge sees: sessions of one machine, and pairs that took turns."""

import msgspec

from ci_perf.judging import compare as judge
from ci_perf.judging import summarise
from ci_perf.judging.policy import default_limits
from ci_perf.model import run as runs
from ci_perf.model.suite import Limits, Tiers
from tests.comparisons import an_interleaved
from tests.runs import STEADY, VALID, a_measured, a_process, a_run

# Six days of a quiet machine: sessions differ by a few thousandths, as launches do.
DAYS = (1.0, 1.002, 0.999, 1.001, 0.998, 1.0)


def scaled(values, factor):
    return tuple(factor * value for value in values)


def sessions_of(workload="w", *, days=DAYS, step_s=STEADY, **more):
    """Runs of one workload on several days."""
    return [a_run(a_measured(workload, *scaled(step_s, day), **more)) for day in days]


# A quiet history of the workload `w`, and the times of a head that is 10 % slower.
HISTORY = sessions_of()
SLOWER = scaled(STEADY, 1.1)


def a_history(*measured):
    """The sessions of several runs as one side, oldest first."""
    sides = [summarise.run(run, label="baselines") for run in measured]
    latest = sides[-1]
    subjects = []
    for subject in latest.subjects:
        same = [s for side in sides for s in side.subjects if s.workload == subject.workload]
        sessions = tuple(session for other in same for session in other.sessions)
        subjects.append(msgspec.structs.replace(subject, sessions=sessions))
    return msgspec.structs.replace(latest, subjects=tuple(subjects))


def no_history(head):
    """The other side of a run that has no baseline at all."""
    return msgspec.structs.replace(
        summarise.run(head, label=""), run="", validity=VALID, subjects=(), interleaved=None
    )


def a_pair(base_s, head_s, **more):
    """One launch of each side, by their step times; further arguments are of the head's process."""
    base = more.pop("base", {})
    return runs.Pair(
        first="base", base=a_process(step_s=base_s, **base), head=a_process(step_s=head_s, **more)
    )


def pairs(ratio, *, count=18, base_s=1e-3, spread=0.001, **more):
    """Pairs whose head takes `ratio` times as long, give or take `spread`."""
    noise = (1 - spread, 1 + spread, 1.0)
    return [a_pair(base_s, base_s * ratio * noise[i % 3], **more) for i in range(count)]


def in_turns(run, launched=(), *, workload="w", trouble="", file="head", **more):
    """The same run, of which the base was launched beside the head of one workload."""
    paired = runs.Paired(workload=workload, file=file, pairs=tuple(launched), trouble=trouble)
    return msgspec.structs.replace(
        run, paired=(*run.paired, paired), interleaved=an_interleaved(**more)
    )


def beside(ratio, *, workload="w"):
    """What a run says of pairs whose head takes `ratio` times as long: arguments of `a_run`."""
    paired = runs.Paired(workload=workload, pairs=tuple(pairs(ratio)))
    return {"paired": (paired,), "interleaved": an_interleaved()}


def judged(history, head, **more):
    """What is said of a run against sessions of earlier days; one run stands for four alike."""
    history = [history] * 4 if isinstance(history, runs.Run) else history
    before = a_history(*history) if history else no_history(head)
    return judge.compare(before, summarise.run(head, label="run.json"), **more)


def row_of(comparison, metric="step_time_s", workload="w"):
    """What is said of one metric."""
    rows = [r for r in comparison.rows if r.workload == workload]
    return next(r for r in rows if getattr(r, "metric", None) == metric)


def said(comparison, metric="step_time_s", workload="w"):
    """Its verdict and reason code."""
    row = row_of(comparison, metric, workload)
    return row.verdict, row.code


def a_head(step_s=STEADY, **more):
    """A run of the workload `w`."""
    return a_run(a_measured("w", *step_s), **more)


def undecided(history, head, limits=None):
    """Whom another pair may decide, and how many suspects there are."""
    before = a_history(*history) if history else no_history(head)
    known = limits or Limits(default=default_limits())
    names, suspects = judge.find_undecided(
        before, summarise.run(head, label=""), limits=known, tiers=Tiers()
    )
    return tuple(names), suspects
