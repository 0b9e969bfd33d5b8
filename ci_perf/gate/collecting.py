"""Make the tests of a plan workloads: what that takes runs code of a checkout."""

import contextlib
import dataclasses
import functools
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from ci_perf import hooks
from ci_perf.api_types import Notify
from ci_perf.errors import CiPerfError, UsageError
from ci_perf.launch import Interrupted, never
from ci_perf.model.suite import Plan, PlannedWorkload, find_node, is_selected
from ci_perf.suite import check_selection
from ci_perf.system import child
from ci_perf.worktree import Checkout

# What one command line surely takes.
_MOST_NODES = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """Tests of a checkout: a workload for each, and by node id why the others are none."""

    workloads: tuple[PlannedWorkload, ...]
    left_out: dict[str, str]


class NothingMeasuredError(UsageError):
    """Tests were collected, and none of them measures something."""


def refuse_tests(plan: Plan) -> None:
    """Refuse a plan with tests, where nothing collects them. Raises UsageError."""
    if plan.tests:
        raise UsageError(
            f"suite {plan.suite!r}: expected workloads and commands, found tests of "
            f"{plan.tests[0].id}. Only `run`, `check`, and `list` without --against take tests; "
            "name another suite"
        )


def collect_plan(
    plan: Plan,
    root: Path,
    *,
    runs: bool,
    notify: Notify,
    interrupted: Interrupted = never,
    is_parallel: bool = False,
) -> Plan:
    """Return a plan with a workload for each of its tests, as they are in the checkout at `root`.

    Each test is run up to its benchmark where it `runs`. `is_parallel` says that another child runs
    at the same time. Raises UsageError: no tests, an id twice, or none that is selected. Raises
    KeyboardInterrupt once `interrupted`.
    """
    if not plan.tests:
        return plan
    whole = {workload.id: workload for workload in plan.workloads}
    left_out: dict[str, str] = {}
    for tests in plan.tests:
        source = hooks.find_sources().get(tests.id)
        if source is None:
            raise UsageError(f"suite {plan.suite!r}: this installation cannot collect {tests.id}")
        found: Collected = hooks.load(source.plan)(
            tests,
            plan,
            root,
            runs=runs,
            notify=notify,
            interrupted=interrupted,
            is_parallel=is_parallel,
        )
        for workload in found.workloads:
            if workload.id in whole:
                raise UsageError(
                    f"suite {plan.suite!r}: expected a new id, found {workload.id!r} again: two "
                    "entries collect it"
                )
            whole[workload.id] = workload
        left_out |= found.left_out
    check_selection(plan.selection, list(whole), plan.suite)
    selected = tuple(each for each in whole.values() if is_selected(each.id, plan.selection))
    return msgspec.structs.replace(plan, workloads=selected, tests=(), left_out=left_out)


def collect_sides(
    plan: Plan,
    base: Checkout | None,
    *,
    at_once: bool,
    notify: Notify,
    interrupted: Interrupted,
) -> tuple[Plan, Checkout | None]:
    """Return the head's plan and the base, as the next two functions do; `at_once`, if they can.

    If a test fails then, or only the base has it, one may have been in the way of the other: each
    is collected alone.
    """
    root = Path(plan.root)
    if at_once and plan.tests and base and _has_tests(base):
        said: list[str] = []
        with contextlib.suppress(CiPerfError):
            head, before = _collect_at_once(plan, base, said.append, interrupted)
            fails = any("fails" in each.parameters for each in head.workloads)
            if not (fails or _find_lost(before, head)):
                for line in said:
                    notify(line)
                return head, _compare_sides(base, before, head, interrupted)
    head = collect_plan(plan, root, runs=True, notify=notify, interrupted=interrupted)
    return head, base and collect_base(base, head, notify, interrupted)


def _collect_at_once(
    plan: Plan, base: Checkout, notify: Notify, interrupted: Interrupted
) -> tuple[Plan, Plan]:
    """Return the plans of head and base. Raises as `collect_plan` does, once both have ended."""
    is_over = threading.Event()

    def must_stop() -> bool:
        return is_over.is_set() or interrupted()

    with child.end_orphans(), ThreadPoolExecutor(1) as threads:
        try:
            of_base = threads.submit(_collect_base, base, must_stop, is_parallel=True)
            how: dict[str, Any] = {
                "notify": notify,
                "interrupted": interrupted,
                "is_parallel": True,
            }
            return collect_plan(plan, Path(plan.root), runs=True, **how), of_base.result()
        finally:
            is_over.set()


def collect_base(
    base: Checkout, head: Plan, notify: Notify, interrupted: Interrupted = never
) -> Checkout:
    """Return a base with a workload for each of its tests, called as in the head, and what is lost.

    These are run once: one that the base does not measure either is not lost.
    """
    if base.plan is None or not _has_tests(base):
        return base
    try:
        plan = _collect_base(base, interrupted)
    except CiPerfError as error:
        first = str(error).partition("\n")[0]
        note = f"the base has no tests: {first}"
        notify(f"note: {note}")
        plan = msgspec.structs.replace(base.plan, tests=())
        return dataclasses.replace(base, plan=plan, notes=(*base.notes, note))
    return _compare_sides(base, plan, head, interrupted)


def _has_tests(base: Checkout) -> bool:
    return bool(base.plan and base.plan.tests and not base.trouble)


def _collect_base(base: Checkout, interrupted: Interrupted, *, is_parallel: bool = False) -> Plan:
    """Return the plan of the base with its tests, of which none runs. Raises as `collect_plan`."""
    assert base.plan is not None
    whole = msgspec.structs.replace(base.plan, selection=())
    return collect_plan(
        whole,
        base.root,
        runs=False,
        notify=lambda _: None,
        interrupted=interrupted,
        is_parallel=is_parallel,
    )


def _compare_sides(base: Checkout, plan: Plan, head: Plan, interrupted: Interrupted) -> Checkout:
    assert base.plan is not None
    collect = functools.partial(collect_plan, root=base.root, interrupted=interrupted)
    whole, lost = msgspec.structs.replace(base.plan, selection=()), _find_lost(plan, head)
    measured = set(lost)
    if lost:
        nodes = msgspec.structs.replace(whole.tests[0], collects=tuple(lost))
        tests = (nodes,) if len(lost) <= _MOST_NODES else whole.tests
        alone = msgspec.structs.replace(whole, workloads=(), tests=tests)
        with contextlib.suppress(UsageError):  # pytest itself fails: each may be lost
            measured = _find_measured(collect, alone)
    unmeasured = {
        name: head.left_out.get(node) or head.left_out.get(_find_file(node), "")
        for node, name in lost.items()
        if node in measured
    }
    # Its id follows from all paths of a table, of which one side may lack some.
    ids = {_node(workload): workload.id for workload in head.workloads if _node(workload)}
    shared = tuple(
        msgspec.structs.replace(workload, id=ids.get(_node(workload), workload.id))
        for workload in plan.workloads
        if _node(workload) not in lost
    )
    plan = msgspec.structs.replace(plan, workloads=shared)
    return dataclasses.replace(base, plan=plan, unmeasured=unmeasured)


def _find_measured(collect: Callable[..., Plan], plan: Plan) -> set[str]:
    """Run the tests of a plan once; return the nodes of those that measure something."""
    try:
        once = collect(plan, runs=True, notify=lambda _: None)
    except NothingMeasuredError:
        return set()
    return {_node(workload) for workload in once.workloads}


def _find_lost(base: Plan, head: Plan) -> dict[str, str]:
    """Return the ids, by node id, of what was asked for and the head does not measure.

    A test that is new in the head may be that of the base of the same id, in a file that has moved.
    Nobody knows the tests of a file that one side cannot import: the other side's stand for it.
    """
    nodes = {_node(workload) for workload in head.workloads}
    known = nodes | {_find_file(node) for node in nodes}
    before = {_node(workload) for workload in base.workloads}
    new = {workload.id for workload in head.workloads if _node(workload) not in before}
    asked = [each for each in base.workloads if is_selected(each.id, head.selection)]
    names = {_node(workload): workload.id for workload in asked if workload.id not in new}
    lost = names.keys() - known - {""}
    return {node: names[node] for node in sorted(lost) if _find_file(node) not in nodes}


def _node(workload: PlannedWorkload) -> str:
    return find_node(workload.launch, workload.parameters)


def _find_file(node: str) -> str:
    return node.partition("::")[0]
