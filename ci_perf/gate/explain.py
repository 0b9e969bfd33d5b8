"""Say why workloads of a run moved, or profile them now: what they do, and what limits them."""

from collections.abc import Collection, Iterable
from pathlib import Path

from ci_perf import session
from ci_perf.errors import CiPerfError, UsageError
from ci_perf.gate import Notify, compare, measure, traces
from ci_perf.gate.commit_suite import RepositoryFolders
from ci_perf.gate.options import MeasureOptions
from ci_perf.judging import idle, profiled_steps
from ci_perf.model.comparison import Change
from ci_perf.model.explained import ExplainedWorkload, ExplainedWorkloads
from ci_perf.model.run import Run
from ci_perf.model.step_profile import ProfiledPairs, StepProfile
from ci_perf.session import Listener, Profiled
from ci_perf.worktree import Checkout


def of_run(
    source: Run | Path,
    select: Collection[str],
    folders: RepositoryFolders,
    *,
    notify: Notify,
) -> ExplainedWorkloads:
    """Judge a run, and return what explains its rows; of the workloads `select`, all without any.

    Raises InvalidFileError and UsageError: no such workload in the run.
    """
    run, label = compare.read_run(source)
    measured = [
        *(each.workload for each in run.measured),
        *(each.workload for each in run.failed),
        *(each.workload for each in run.same),
    ]
    chosen = _chosen(measured, select, label)
    comparison = compare.with_baselines(run, folders, label=label, fail_on=None, notify=notify)
    rows = [row for row in comparison.rows if isinstance(row, Change) and row.explanation]
    heads = {each.workload: each.pairs[0].head for each in run.profiled if each.pairs}
    return ExplainedWorkloads(
        suite=run.suite,
        base=run.interleaved.source.commit or "" if run.interleaved else "",
        workloads=tuple(
            ExplainedWorkload(
                workload=name,
                rows=tuple(row for row in rows if row.workload == name),
                profile=heads.get(name),
                trouble="" if name in heads else _not_profiled(run),
            )
            for name in chosen
            if select or name in heads or any(row.workload == name for row in rows)
        ),
    )


def _chosen(names: Iterable[str], select: Collection[str], label: str) -> list[str]:
    """Return the names that were asked for. Raises UsageError."""
    known = list(dict.fromkeys(names))
    if not select:
        return known
    for wanted in select:
        if not any(_is_named(name, wanted) for name in known):
            shown = ", ".join(known) or "none"
            raise UsageError(f"{label}: no workload {wanted!r}; found: {shown}")
    return [name for name in known if any(_is_named(name, wanted) for wanted in select)]


def _is_named(name: str, wanted: str) -> bool:
    """Whether a workload is meant: by its whole id, or by the part before the first dot."""
    return wanted in {name, name.partition(".")[0]}


def _not_profiled(run: Run) -> str:
    if run.interleaved is None:
        return "the run was measured without --against: no base was profiled"
    return "the run did not profile it: its pairs prove no change, or --explain 0s was given"


def now(options: MeasureOptions, *, notify: Notify, listener: Listener) -> ExplainedWorkloads:
    """Profile workloads, with `options.against` on both sides; nothing is timed or judged.

    All launches together take about `options.budget_s` at most. Raises UsageError,
    InvalidFileError and other CiPerfErrors, and KeyboardInterrupt.
    """
    plan = measure.plan(options)
    folder = traces.prepared(options.traces)
    snapshots = traces.prepared(options.snapshot)
    identity = session.new_identity()
    with measure.launching(plan, options, identity, notify) as (ending, checkout, launcher):
        base = measure.set_up(plan, checkout, launcher, ending, notify)
        if base and base.trouble:
            raise CiPerfError(base.trouble)
        with measure.followed(listener):
            ending.check()
            profiled = session.profile(
                plan,
                launcher,
                listener,
                device=plan.device if options.device == "auto" else options.device,
                identity=identity,
                lock_timeout_s=options.lock_timeout_s,
                budget_s=options.budget_s,
                checkout=base,
                traces=folder,
                snapshots=snapshots,
                tracing=options.tracing,
            )
    for line in (
        *traces.said(options.traces, _sides(profiled)),
        *traces.said(options.snapshot, _sides(profiled), "snapshot"),
    ):
        notify(line)
    return ExplainedWorkloads(
        suite=plan.suite, base=_commit(checkout), workloads=tuple(_workloads(profiled))
    )


def of_pairs(suite: str, base: str, pairs: Iterable[ProfiledPairs]) -> ExplainedWorkloads:
    """Return what profiled pairs explain; `base` is the commit of their base."""
    return ExplainedWorkloads(suite=suite, base=base, workloads=tuple(map(_explained, pairs)))


def _sides(profiled: Profiled) -> Iterable[tuple[str, StepProfile]]:
    """Return the profiles whose traces may be kept, by what they are called."""
    yield from traces.sides(profiled.pairs)
    for name, answer in profiled.profiles.items():
        if isinstance(answer, StepProfile):
            yield name, answer


def _commit(checkout: Checkout | None) -> str:
    return "" if checkout is None else checkout.source.commit or ""


def _workloads(profiled: Profiled) -> Iterable[ExplainedWorkload]:
    yield from map(_explained, profiled.pairs)
    for name, answer in profiled.profiles.items():
        if isinstance(answer, StepProfile):
            limits = None if answer.absent else idle.limits(answer)
            yield ExplainedWorkload(
                workload=name, profile=answer, limits=limits, trouble=answer.absent
            )
        else:
            yield ExplainedWorkload(workload=name, trouble=answer)


def _explained(sides: ProfiledPairs) -> ExplainedWorkload:
    change = profiled_steps.step_change(sides.pairs)
    return ExplainedWorkload(
        workload=sides.workload,
        explanation=profiled_steps.explain(sides, change),
        step=change,
        profile=sides.pairs[0].head if sides.pairs else None,
        trouble=sides.trouble,
    )
