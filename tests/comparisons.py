"""Builders of comparisons that name only what a test is about."""

import msgspec

from ci_perf.judging import compare as judge
from ci_perf.judging import rules, summarise
from ci_perf.model import comparison as c
from ci_perf.model import metrics
from ci_perf.model.plant import Plant
from ci_perf.model.run import Interleaved, Source, Tool
from tests.runs import BASE_COMMIT, GPU, HEAD_COMMIT, VALID

_CODES = {
    c.Verdict.UNCHANGED: c.Code.WITHIN_LIMIT,
    c.Verdict.REGRESSED: c.Code.BEYOND_LIMIT,
    c.Verdict.IMPROVED: c.Code.BEYOND_LIMIT,
    c.Verdict.NUMERICS_CHANGED: c.Code.BEYOND_LIMIT,
    c.Verdict.LIKELY_SLOWER: c.Code.HISTORY_ALONE,
    c.Verdict.FAILED: c.Code.FAILED,
    c.Verdict.NEW: c.Code.NEW,
}
_BY_PAIRS = {c.Verdict.REGRESSED, c.Verdict.IMPROVED}
RANGES = {metrics.Kind.COUNT, metrics.Kind.DEVICE_MEMORY, metrics.Kind.SHARE}


def a_change(
    workload="mlp", verdict=c.Verdict.UNCHANGED, *, base=41.2e-3, ratio=1.01, metric=None, **more
):
    """One compared metric: confirmed by 9 pairs, or judged by 3 sessions.

    Its interval is 1 % wide on both sides, unless ranges decide.
    """
    metric = metric or metrics.STEP_TIME
    is_noisy = metric.kind not in RANGES
    limit = more.pop("limit", 0.02 if is_noisy else 0.01)
    undecided = c.Code.SPREAD if is_noisy else c.Code.RANGES_OVERLAP
    code = c.Code(more.pop("code", _CODES.get(verdict, undecided)))
    is_paired = is_noisy and (verdict in _BY_PAIRS or code is c.Code.BASELINE_MOVED)
    head = more.pop("head", base * ratio)
    if metric.better is metrics.Better.LOWER:
        ratio = head / base if base else None
    return c.Change(
        workload=workload,
        metric=metric.name,
        base=base,
        head=head,
        base_processes=more.pop("base_processes", 15),
        head_processes=more.pop("head_processes", 3),
        base_sessions=more.pop("base_sessions", 3),
        items_per_step=more.pop("items_per_step", 32),
        item_unit=more.pop("item_unit", "image"),
        ratio=ratio,
        interval=more.pop("interval", _interval(ratio, metric)),
        limit=limit,
        smallest_detectable=more.pop("smallest_detectable", 1.2 * limit if is_noisy else limit),
        gate=more.pop("gate", True),
        verdict=verdict,
        code=code,
        pairs=more.pop("pairs", 9 if is_paired else 0),
        **more,
    )


def _interval(ratio, metric):
    if ratio is None or metric.kind in RANGES:
        return None
    return c.Interval(low=ratio - 0.01, high=ratio + 0.01)


def an_uncompared(workload="mlp", verdict=c.Verdict.FAILED, note="", *, metric="", **more):
    """A workload, or one metric of it, without a partner on the other side."""
    return c.Uncompared(
        workload=workload,
        metric=metric,
        verdict=verdict,
        code=c.Code(more.pop("code", _CODES.get(verdict, c.Code.NOT_COMPARABLE))),
        note=note,
        base=more.pop("base", {}),
        head=more.pop("head", {}),
        output=more.pop("output", ""),
        parameters=more.pop("parameters", {}),
        gate=more.pop("gate", True),
        **more,
    )


def a_numerics(
    workload="mlp", verdict=c.Verdict.NUMERICS_CHANGED, *, base=(2.302585, 2.295412), **more
):
    """What a workload computes; other losses on the head, from the second on, unless told."""
    head = more.pop("head", (*base[:1], *(1.01 * value for value in base[1:])))
    return c.Numerics(
        workload=workload,
        base=base,
        head=head,
        losses=more.pop("losses", len(base)),
        place=more.pop("place", min(1, len(base) - 1)),
        difference=more.pop("difference", 0.0099),
        tolerance=0.001,
        gate=more.pop("gate", False),
        verdict=verdict,
        code=c.Code(more.pop("code", _CODES[verdict])),
        note=more.pop("note", ""),
    )


def a_remedy(pairs=None, **more):
    """What would decide: as many pairs, or else less noise than 15 % or a limit of 12 %."""
    return c.Remedy(
        pairs=pairs,
        spread=more.pop("spread", 0.15),
        quiet_spread=more.pop("quiet_spread", 0.04),
        limit=more.pop("limit", 0.1163),
    )


def an_interleaved(**more):
    """Base and head launched in turns until everything was settled, unless told."""
    plain = Interleaved(
        ref="main",
        source=Source(commit=BASE_COMMIT, branch="main", dirty=False),
        suspects=3,
        budget_s=1200.0,
        spent_s=250.0,
        stopped="decided",
    )
    return msgspec.structs.replace(plain, **more)


def a_plant(workload="w", **more):
    """A slowdown of a tenth, as `ci-perf try` plants it."""
    return msgspec.structs.replace(Plant(workload=workload, share=0.1, iterations=1000), **more)


def a_side(**more):
    """Where numbers come from: three sessions of last month's main unless told."""
    side = c.Side(
        label="baselines/nvidia-h200/standard",
        run="",
        source=Source(commit=BASE_COMMIT, branch="main", dirty=False),
        machine=GPU,
        sessions=3,
        oldest="2026-11-01T10:00:00Z",
        newest="2026-11-20T10:00:00Z",
    )
    return msgspec.structs.replace(side, **more)


def a_head(**more):
    """The side of the change."""
    defaults = {
        "label": "run.json",
        "run": "0123456789ab",
        "sessions": 1,
        "source": Source(commit=HEAD_COMMIT, branch="faster-loader", dirty=False),
        "oldest": "2026-11-21T10:00:00Z",
        "newest": "2026-11-21T10:00:00Z",
    }
    return a_side(**(defaults | more))


def a_comparison(*rows, verdict=None, **more):
    """Rows in a comparison whose verdict is that of the worst row, as the judge would say.

    Numerics without a gate count for nothing, as there.
    """
    counted = [r.verdict for r in rows if r.gate or not isinstance(r, c.Numerics)]
    verdict = verdict or c.worst(counted)
    comparison = c.Comparison(
        tool=Tool(version="0.1.0"),
        suite="standard",
        selection=(),
        verdict=verdict,
        exit_code=rules.exit_code(rows, VALID),
        base=a_side(),
        head=a_head(),
        validity=VALID,
        differences=(),
        rows=rows,
    )
    return msgspec.structs.replace(comparison, **more)


def judged(base, head, **options):
    """Two runs, judged."""
    return judge.compare(
        summarise.run(base, label="base"), summarise.run(head, label="head"), **options
    )


def verdicts_of(comparison, workload):
    """What is said of the metrics of a workload, by name; of the whole of it, by no name."""
    return {
        row.metric: row.verdict
        for row in comparison.rows
        if row.workload == workload and not isinstance(row, c.Numerics)
    }
