"""Make the tests of a plan workloads: what that takes runs code of a checkout."""

import dataclasses
import functools
from collections.abc import Iterator
from pathlib import Path

import msgspec

from ci_perf import hooks
from ci_perf.api_types import Notify
from ci_perf.errors import CiPerfError, UsageError
from ci_perf.launch import Interrupted, never
from ci_perf.model.suite import Plan, PlannedWorkload, is_selected
from ci_perf.suite import check_selection
from ci_perf.worktree import Checkout


def refuse_tests(plan: Plan) -> None:
    """Refuse a plan with tests, where nothing collects them. Raises UsageError."""
    if plan.tests:
        raise UsageError(
            f"suite {plan.suite!r}: expected workloads and commands, found tests of "
            f"{plan.tests[0].id}. Only `run`, `check`, and `list` without --against take tests; "
            "name another suite"
        )


def collect_plan(
    plan: Plan, root: Path, *, runs: bool, notify: Notify, interrupted: Interrupted = never
) -> Plan:
    """Return a plan with a workload for each of its tests, as they are in the checkout at `root`.

    Each test is run once where it `runs`. Raises UsageError: no tests, an id twice, or none that is
    selected. Raises KeyboardInterrupt once `interrupted`.
    """
    if not plan.tests:
        return plan
    whole = {workload.id: workload for workload in plan.workloads}
    collect = functools.partial(_plan_tests, runs=runs, notify=notify, interrupted=interrupted)
    for workload in collect(plan, root):
        if workload.id in whole:
            raise UsageError(
                f"suite {plan.suite!r}: expected a new id, found {workload.id!r} again: two "
                "entries collect it"
            )
        whole[workload.id] = workload
    check_selection(plan.selection, list(whole), plan.suite)
    selected = tuple(each for each in whole.values() if is_selected(each.id, plan.selection))
    return msgspec.structs.replace(plan, workloads=selected, tests=())


def _plan_tests(
    plan: Plan, root: Path, *, runs: bool, notify: Notify, interrupted: Interrupted
) -> Iterator[PlannedWorkload]:
    for tests in plan.tests:
        source = hooks.find_sources().get(tests.id)
        if source is None:
            raise UsageError(f"suite {plan.suite!r}: this installation reads no {tests.id}")
        yield from hooks.load(source.plan)(
            tests, plan, root, runs=runs, notify=notify, interrupted=interrupted
        )


def collect_base(
    base: Checkout, head: Plan, notify: Notify, interrupted: Interrupted = never
) -> Checkout:
    """Return a base with a workload for each of its tests; it is told which the `head` lacks."""
    if base.plan is None or not base.plan.tests or base.trouble:
        return base
    try:
        plan = collect_plan(
            msgspec.structs.replace(base.plan, selection=()),
            base.root,
            runs=False,
            notify=notify,
            interrupted=interrupted,
        )
    except CiPerfError as error:
        first = str(error).partition("\n")[0]
        plan = msgspec.structs.replace(base.plan, tests=())
        note = f"the base has no tests: {first}"
    else:
        names = {workload.id for workload in head.workloads}
        deleted = [each.id for each in plan.workloads if is_selected(each.id, head.selection)]
        deleted = [name for name in deleted if name not in names]
        note = f"in the base, and not measured in the head: {', '.join(deleted)}"
        note = note if deleted else ""
    if note:
        notify(f"note: {note}")
    return dataclasses.replace(base, plan=plan, notes=(*base.notes, *[note] * bool(note)))
