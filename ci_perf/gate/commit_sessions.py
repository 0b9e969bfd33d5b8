"""What a node does with a unit that is a commit: it checks that out itself, and measures it there.

The checkout, its `setup` and every launch happen on the node, in worktrees on its own disk, by the
same functions as without an engine. Nothing of a commit runs where the controller runs.
"""

import msgspec

from ci_perf import worktree
from ci_perf.gate import Notify, commits, measure, run_summary
from ci_perf.gate.bisect_sessions import BisectSessions, PairsJudge
from ci_perf.gate.commits import CommitPrograms
from ci_perf.gate.measure import MeasureOptions
from ci_perf.judging import bisecting
from ci_perf.model.environment import Machine
from ci_perf.model.run import Run
from ci_perf.model.shards import CommitWork, WorkUnit
from ci_perf.model.suite import Limits
from ci_perf.session import Listener
from ci_perf.system import files, signals


def measured(
    options: MeasureOptions, unit: WorkUnit | None, *, notify: Notify, listener: Listener
) -> Run:
    """Measure by options that were narrowed to a unit, if any: what is checked out, or its commit.

    Raises CiPerfError: it cannot be measured; KeyboardInterrupt once an interrupted run is written.
    """
    if unit is None or unit.commit is None:
        return measure.measure(options, notify=notify, listener=listener)
    if unit.against:
        return _against_base(options, unit, unit.commit, notify, listener)
    of_unit = worktree.commit_of(
        options.root, unit.source.commit, has_setup=True, label=unit.commit.label
    )
    with of_unit as checkout:
        own = commits.options_of(options, checkout)
        return measure.measure_plan(
            measure.plan(own), own, baselines=own.baselines, notify=notify, listener=listener
        )


def _against_base(
    options: MeasureOptions, unit: WorkUnit, work: CommitWork, notify: Notify, listener: Listener
) -> Run:
    if options.run_output is not None:
        files.check_target(options.run_output)
    of_base = worktree.commit_of(options.root, unit.against, has_setup=True, label=work.label)
    with signals.noted() as ending, of_base as base:
        (workload,) = unit.workloads
        sessions = BisectSessions(
            options, base, ending, notify, lambda: listener, workload=workload, label=work.label
        )
        judge = PairsJudge(
            lambda machine: work.limits or _limits_of_suite(options, unit, work, machine, notify),
            work.tiers,
            explained=work.explained,
        )
        with measure.refusal_written(options):
            run = sessions.run(unit.source.commit, base, judge)
        run = msgspec.structs.replace(run, unit=unit.id)
        if options.run_output is not None:
            files.write(options.run_output, run)
    notify(run_summary.text(run, options.run_output))
    if run_summary.is_interrupted(run):
        raise KeyboardInterrupt
    return run


def _limits_of_suite(
    options: MeasureOptions, unit: WorkUnit, work: CommitWork, machine: Machine, notify: Notify
) -> Limits:
    """Return the limits of the commit's own suite, as the controller has them."""
    line = commits.between(options.root, unit.against, unit.source.commit)
    programs = CommitPrograms(line, options, notify)
    limits = programs.plan(len(line.commits) - 1, programs.defaults(machine)).limits
    return bisecting.only(limits, unit.workloads[0], work.metric) if work.metric else limits
