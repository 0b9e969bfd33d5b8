"""What launches with a plant, and without one, say of a gate. Pure: nothing is launched."""

from collections.abc import Iterator, Sequence
from typing import Literal

from ci_perf.errors import ExitCode
from ci_perf.features.rehearsal.plants import MOVES, SHOWN_BY
from ci_perf.judging import launch_numbers, policy, rules
from ci_perf.model import metrics
from ci_perf.model.comparison import Change, Code, Comparison, Row, Verdict
from ci_perf.model.environment import Machine
from ci_perf.model.metrics import Kind
from ci_perf.model.plant import Plant
from ci_perf.model.rehearsed import Attempt, PlantAnswer, RehearsedSuite, RehearsedWorkload
from ci_perf.model.run import Run
from ci_perf.model.suite import FailOn, Limits
from ci_perf.model.summary import Numbers
from ci_perf.report import units

# No step of a program is shorter: to call a function that does nothing takes 50 ns.
_SHORTEST_S = 1e-6
# As many launches that agree to the last digit are no measurement.
_LAUNCHES = 4
_LIMITS_THAT_PASS = 3
_LIMITS_BEYOND_NOISE = 2
_GREEN = {Verdict.UNCHANGED, Verdict.IMPROVED, Verdict.NEW}
_BUDGET = "the budget ended"
_LATE = {Code.TOO_FEW_PAIRS, Code.TOO_FEW_SESSIONS, Code.HISTORY_ALONE}


def list_numbers(run: Run, workload: str) -> list[Numbers]:
    """Return the numbers of all launches of a workload, of base and head."""
    measured = next((each for each in run.measured if each.workload == workload), None)
    if measured is None:
        return []
    numbers = list(launch_numbers.list_workload_numbers(measured, run))
    for paired in run.paired:
        if paired.workload == workload:
            for both in launch_numbers.list_pair_numbers(paired, measured, run):
                numbers += both
    return numbers


def judge_alike(
    run: Run, comparison: Comparison, workload: str, limits: Limits, fail_on: FailOn
) -> RehearsedWorkload:
    """Say what launches of the same program have shown."""
    rows = _list_rows(comparison, workload)
    numbers = list_numbers(run, workload)
    step = _find_row(rows, metrics.STEP_TIME.name)
    if step is not None:
        limit = step.limit
    else:
        step_s = min((each[metrics.STEP_TIME.name] for each in numbers), default=1.0)
        limit = policy.relative_size(limits.of(workload)[metrics.STEP_TIME.name], step_s)
    alike: Literal["clear", "red", "open"] = "clear"
    why = ""
    if rules.exit_code(rows, comparison.validity, fail_on) == ExitCode.REGRESSED:
        alike, why = "red", "; ".join(_tell_reds(rows))
    elif why := _find_doubt(run, comparison, workload, step):
        alike = "open"
    broken = [*_find_idle(run, workload, numbers)]
    if step is not None:
        broken += _find_loose(step, run.environment.hard)
    if alike == "open" and _is_hopeless(run, comparison, step):
        broken.append(f"nothing can be decided on this machine: {why}")
    return RehearsedWorkload(alike=alike, why=why, limit=limit, broken=tuple(broken))


def leave_out(plant: Plant) -> Attempt:
    """Return a plant for which no time was left."""
    return Attempt(
        plant=plant, answer=PlantAnswer.OPEN, ratio=None, pairs=0, duration_s=0.0, why=_BUDGET
    )


def judge_plant(plant: Plant, run: Run, comparison: Comparison, fail_on: FailOn) -> Attempt:
    """Say what the gate has said of a plant."""
    rows = _list_rows(comparison, plant.workload)
    moved = (_find_row(rows, metric.name) for metric in MOVES[plant.kind])
    row = next(filter(None, moved), None)
    answer, why = PlantAnswer.OPEN, _find_doubt(run, comparison, plant.workload, row)
    # A red row of another kind is no answer to this plant.
    kinds = SHOWN_BY[plant.kind]
    own = [each for each in rows if isinstance(each, Change) and _find_kind(each) in kinds]
    if rules.exit_code(own, comparison.validity, fail_on) == ExitCode.REGRESSED:
        answer, why = PlantAnswer.FOUND, ""
    elif row is not None and row.verdict is Verdict.REGRESSED:
        answer = PlantAnswer.PASSED
        why = f"fail_on = {fail_on}" if row.gate else f"{row.metric}: gate = false"
    elif row is not None and row.verdict in {Verdict.UNCHANGED, Verdict.IMPROVED}:
        answer, why = PlantAnswer.UNCHANGED, _tell_change(row)
    pairs = sum(len(each.pairs) for each in run.paired if each.workload == plant.workload)
    return Attempt(
        plant=plant,
        answer=answer,
        ratio=row.ratio if row else None,
        pairs=pairs,
        duration_s=run.duration_s,
        why=why,
    )


def find_broken(attempt: Attempt, limit: float, run: Run, comparison: Comparison) -> Iterator[str]:
    """Say why the gate cannot fail, by work beyond twice the limit, which no noise hides."""
    plant, share = attempt.plant, units.limit(attempt.plant.share)
    if plant.kind != "work" or plant.share < _LIMITS_BEYOND_NOISE * limit:
        return
    rows = _list_rows(comparison, plant.workload)
    if attempt.answer is PlantAnswer.PASSED:
        yield f"work of {share} passes: {attempt.why}"
    elif attempt.answer is PlantAnswer.UNCHANGED:
        cause = "what is timed is not the step: a cached result, a loop in another process"
        yield f"planted work of {share} changes nothing ({attempt.why}); {cause}"
    elif attempt.answer is PlantAnswer.OPEN and _is_hopeless(run, comparison, _find_step(rows)):
        yield f"nothing can be decided on this machine: {attempt.why}"


def choose_exit_code(suite: RehearsedSuite) -> ExitCode:
    """Return 1 where the gate alarms without a change or cannot fail, 3 where an answer lacks."""
    every = suite.workloads.values()
    if any(each.alike == "red" or each.broken for each in every):
        return ExitCode.REGRESSED
    is_proven = all(
        each.alike == "clear"
        and each.attempts
        and all(attempt.answer is PlantAnswer.FOUND for attempt in each.attempts)
        for each in every
    )
    return ExitCode.OK if is_proven else ExitCode.NO_ANSWER


def _list_rows(comparison: Comparison, workload: str) -> list[Row]:
    return [row for row in comparison.rows if row.workload == workload]


def _find_kind(row: Change) -> Kind:
    return metrics.metric_of(row.metric).kind


def _find_row(rows: Sequence[Row], metric: str) -> Change | None:
    changes = (row for row in rows if isinstance(row, Change) and row.metric == metric)
    return next(changes, None)


def _find_step(rows: Sequence[Row]) -> Change | None:
    return _find_row(rows, metrics.STEP_TIME.name)


def _tell_reds(rows: Sequence[Row]) -> Iterator[str]:
    for row in rows:
        if row.gate and row.verdict not in _GREEN:
            verdict = row.verdict.value.replace("_", " ")
            yield _tell_change(row) if isinstance(row, Change) else verdict


def _tell_change(row: Change) -> str:
    change = "from 0" if row.ratio is None else units.change(row.ratio)
    return f"{row.metric} {change}"


def _find_doubt(run: Run, comparison: Comparison, workload: str, row: Change | None) -> str:
    """Say why there is no answer; empty where there is one."""
    for failed in run.failed:
        if failed.workload == workload:
            return f"failed: {failed.reason.splitlines()[0]}"
    for paired in run.paired:
        if paired.workload == workload and paired.trouble:
            return f"the base failed: {paired.trouble.splitlines()[0]}"
    if (reason := comparison.validity.against(workload)) is not None:
        return reason.detail
    if row is None:
        return "nothing was compared"
    if row.verdict not in {Verdict.INCONCLUSIVE, Verdict.LIKELY_SLOWER}:
        return ""
    if row.code in _LATE or _is_late(run):
        return _BUDGET
    spread = f", pairs differ by {units.limit(row.remedy.spread)}" if row.remedy else ""
    return f"{row.code.value.replace('_', ' ')}{spread}"


def _is_late(run: Run) -> bool:
    return run.interleaved is not None and run.interleaved.stopped == "budget"


def _is_hopeless(run: Run, comparison: Comparison, row: Change | None) -> bool:
    """Whether the machine, and not the budget or the program, is why there is no answer."""
    if comparison.validity.is_run_invalid:
        return True
    return row is not None and row.code not in _LATE and not _is_late(run)


def _find_loose(step: Change, machine: Machine) -> Iterator[str]:
    """Say what a limit lets pass: an alarm needs proof of more than half of it."""
    default = policy.default_limits(machine)[metrics.STEP_TIME.name].relative
    passing = _LIMITS_THAT_PASS * default
    if step.limit / 2 >= passing:
        yield (
            f"a limit of {units.limit(step.limit)} lets {units.limit(passing)} pass, "
            f"{_LIMITS_THAT_PASS} times the default limit"
        )


def _find_idle(run: Run, workload: str, numbers: Sequence[Numbers]) -> Iterator[str]:
    """Say of what a workload measures nothing."""
    name = metrics.STEP_TIME.name
    if numbers and (step_s := max(each[name] for each in numbers)) < _SHORTEST_S:
        yield f"no time is in the step: it takes {units.seconds(step_s)}"
    processes = [
        process for each in run.measured if each.workload == workload for process in each.processes
    ]
    if processes and all(process.work.operators == 0 for process in processes):
        yield "no operator of torch is in the step"
    known = {metric for each in numbers for metric in each}
    for metric in (name, *(each.name for each in metrics.find_own(known))):
        values = [each[metric] for each in numbers if metric in each]
        is_noisy = metrics.metric_of(metric).kind in {Kind.TIME, Kind.TAIL}
        if is_noisy and len(values) >= _LAUNCHES and len(set(values)) == 1:
            said = units.value(values[0], metrics.metric_of(metric).unit)
            yield f"{metric} never varies: {len(values)} launches gave {said}"
