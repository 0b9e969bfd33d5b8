"""Nothing that the base has vanishes: each of it has a judged row, or the job is not green."""

from dataclasses import dataclass
from typing import get_args

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ci_perf.errors import ExitCode
from ci_perf.judging.policy import default_limits
from ci_perf.model import run as runs
from ci_perf.model.comparison import Change, Uncompared
from ci_perf.model.suite import FailOn, Limit, Limits
from tests.comparisons import an_interleaved
from tests.histories import a_pair, judged
from tests.runs import STEADY, a_failed, a_measured, a_run

OWN = ("time.ttft", "rate.tokens", "count.tokens", "tail.p99")
# Steady and with a history, so that something is compared, and nothing else is red.
KNOWN = a_run(a_measured("known", *STEADY))


def a_change_of(*workloads, **more):
    """A run of these workloads beside a steady one that has a baseline, with an own metric."""
    return a_run(a_measured("known", *STEADY), *workloads, **more)


def in_pairs(*launches, head, trouble="", earlier=False, **how):
    """A run of the workload `w`: own metrics of each launch of the base, and of the head's."""
    pairs = tuple(a_pair(1e-3, 1e-3, base={"metrics": own}, metrics=head) for own in launches)
    paired = runs.Paired(workload="w", pairs=pairs, trouble=trouble)
    before = runs.Earlier(run="b", started_at="", check=1, suspects=1, said={}, paired=(paired,))
    return a_change_of(
        a_measured("w", *STEADY, metrics=head),
        paired=() if earlier or not (pairs or trouble) else (paired,),
        earlier=(before,) if earlier else (),
        interleaved=an_interleaved(**{"stopped": "budget", "expected": ("w",), **how}),
    )


def said(head, *, base=KNOWN, **more):
    """What is said of `w` without a comparison, by metric, and the exit code."""
    comparison = judged(base, head, **more)
    rows = [row for row in comparison.rows if row.workload == "w" and isinstance(row, Uncompared)]
    return {row.metric: row.code.value for row in rows}, comparison.exit_code


OK, NO_ANSWER = ExitCode.OK, ExitCode.NO_ANSWER
TTFT = {"time.ttft": 0.1}
NO_GATE = Limits(default={name: Limit(gate=False) for name in default_limits()})


@pytest.mark.parametrize("fail_on", get_args(FailOn))
def test_what_the_budget_leaves_without_a_pair_is_not_new(fail_on):
    codes, exit_code = said(in_pairs(head={}), fail_on=fail_on)

    assert codes == {"": "too_few_pairs"}
    assert exit_code == (ExitCode.REGRESSED if fail_on == "unanswered" else NO_ANSWER)


@pytest.mark.parametrize(
    ("head", "more", "expected"),
    [
        (in_pairs(head={}, expected=()), {}, ({"": "new"}, OK)),
        (in_pairs(head={}, expected=()), {"expected": ("w",)}, ({"": "too_few_pairs"}, NO_ANSWER)),
        (in_pairs(head={}, trouble="boom"), {}, ({"": "base_failed"}, NO_ANSWER)),
        (in_pairs(head={}, trouble="boom", expected=()), {}, ({"": "new"}, OK)),
        (in_pairs(head={}), {"limits": NO_GATE}, ({"": "new"}, OK)),
        (in_pairs(*[{}] * 4, head={}, earlier=True), {}, ({"": "new"}, OK)),
    ],
    ids=["new", "in suite.toml", "base fails", "new, fails there", "no gate", "earlier pairs"],
)
def test_only_what_the_base_has_and_could_fail_has_to_be_compared(head, more, expected):
    assert said(head, **more) == expected


@pytest.mark.parametrize(("tokens", "code"), [(0.0, "new"), (7.0, "too_few_pairs")])
def test_a_count_that_is_zero_could_fail_nothing(tokens, code):
    limits = Limits(default=NO_GATE.default | {"count.tokens": Limit()})

    codes, _ = said(in_pairs(head={"count.tokens": tokens}), limits=limits)

    assert codes == {"": code}


@pytest.mark.parametrize("is_in_base", [True, False])
def test_only_what_the_base_has_can_fail_there(is_in_base):
    head = in_pairs(head={}, trouble="boom", expected=("w",) if is_in_base else ())

    (note,) = [row.note for row in judged(KNOWN, head, limits=NO_GATE).rows if row.code == "new"]
    assert note == ("boom" if is_in_base else "")


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (in_pairs(*[TTFT] * 4, head={}), ({"": "new", "time.ttft": "missing"}, NO_ANSWER)),
        (in_pairs(TTFT, {}, TTFT, head={}), ({"": "new"}, OK)),
        (in_pairs(*[{"count.misses": 0}] * 4, head={}), ({"": "new"}, OK)),
        (
            in_pairs(*[{"count.misses": 7}] * 4, head={}),
            ({"": "new", "count.misses": "missing"}, NO_ANSWER),
        ),
        (in_pairs(*[{"tail.p99": 0.1}] * 4, head={}), ({"": "new", "tail.p99": "missing"}, OK)),
        (in_pairs(*[TTFT] * 4, head={}, accepted={"w": ("time.ttft",)}), ({"": "new"}, OK)),
        (in_pairs(*[{}] * 4, head=TTFT), ({"": "new"}, OK)),
    ],
    ids=["lost", "optional", "zero", "count", "no gate", "accepted", "new"],
)
def test_a_metric_that_all_launches_of_the_base_have_is_missing(head, expected):
    assert said(head) == expected


def test_a_metric_that_has_a_baseline_is_missing_once():
    base = a_change_of(a_measured("w", *STEADY, metrics=TTFT))

    assert said(in_pairs(*[TTFT] * 4, head={}), base=base) == ({"time.ttft": "missing"}, NO_ANSWER)


def test_a_metric_that_another_workload_still_has_is_missing_all_the_same():
    other = a_measured("known", *STEADY, metrics=TTFT)
    run = in_pairs(*[TTFT] * 4, head={})
    head = msgspec.structs.replace(run, measured=(other, *run.measured[1:]))

    assert said(head, base=a_run(other)) == ({"": "new", "time.ttft": "missing"}, NO_ANSWER)


@pytest.mark.parametrize(("trouble", "code"), [("", "too_few_pairs"), ("boom", "new")])
def test_a_metric_without_a_baseline_may_be_one_of_the_base(trouble, code):
    base = a_change_of(a_measured("w", *STEADY))
    codes, exit_code = said(in_pairs(head=TTFT, trouble=trouble), base=base)

    assert codes == {"time.ttft": code}
    assert exit_code == (OK if trouble else NO_ANSWER)


# --- the law


@dataclass(frozen=True)
class Drawn:
    """A workload of the base's plan, and what became of it on the head."""

    name: str
    fate: str
    pairs: int
    of_base: tuple[dict[str, float], ...]
    of_head: dict[str, float]
    is_earlier: bool


metrics = st.dictionaries(st.sampled_from(OWN), st.sampled_from([0.0, 3.0]), max_size=3).map(
    lambda own: {
        name: value or (0.0 if name.startswith("count") else 1.0) for name, value in own.items()
    }
)


@st.composite
def workloads(draw):
    name = draw(st.sampled_from(["u", "v", "w"]))
    launches = draw(st.lists(metrics, min_size=0, max_size=5))
    if launches and draw(st.booleans()):
        launches = [launches[0]] * len(launches)
    head = draw(st.one_of(metrics, st.just(launches[0] if launches else {})))
    fate = draw(st.sampled_from(["measured", "measured", "measured", "failed", "gone"]))
    return Drawn(name, fate, len(launches), tuple(launches), head, draw(st.booleans()))


limits = st.sampled_from(
    [
        Limits(default=default_limits()),
        Limits(default={**default_limits(), "time": Limit(relative=0.05, gate=False)}),
        Limits(default={name: Limit(relative=0.05, gate=False) for name in default_limits()}),
    ]
)


def measure(drawn, stopped):
    """Return the run of these workloads."""
    measured, failed, pairs, earlier = [], [], [], []
    for each in drawn:
        if each.fate == "failed":
            failed.append(a_failed(each.name))
        elif each.fate == "measured":
            measured.append(a_measured(each.name, *STEADY, metrics=each.of_head))
            launched = tuple(
                a_pair(1e-3, 1e-3, base={"metrics": of_base}, metrics=each.of_head)
                for of_base in each.of_base
            )
            part = runs.Paired(workload=each.name, pairs=launched)
            (earlier if each.is_earlier else pairs).append(part)
    before = runs.Earlier(
        run="before", started_at="", check=1, suspects=1, said={}, paired=tuple(earlier)
    )
    how = an_interleaved(stopped=stopped, expected=tuple(each.name for each in drawn))
    return a_change_of(
        *measured,
        *failed,
        interleaved=how,
        paired=tuple(pairs),
        earlier=(before,) if earlier else (),
    )


def list_unanswered(drawn, comparison, limits):
    """Name what the base has and the comparison does not judge; the law, written once more."""
    changes = {(r.workload, r.metric) for r in comparison.rows if isinstance(r, Change)}
    by_kind = {name: limits.default[name.partition(".")[0]].gate for name in OWN}
    for each in drawn:
        gates = limits.default["step_time_s"].gate or any(
            by_kind[name] and value for name, value in each.of_head.items()
        )
        if gates and not any(workload == each.name for workload, _ in changes):
            yield each.name
        for name in set.intersection(*map(set, each.of_base)) if each.of_base else ():
            has_some = any(launch[name] for launch in each.of_base)
            if by_kind[name] and has_some and (each.name, name) not in changes:
                yield f"{each.name} {name}"


@settings(max_examples=100, derandomize=True, deadline=None)
@given(
    st.lists(workloads(), min_size=1, max_size=3, unique_by=lambda each: each.name),
    limits,
    st.sampled_from(["budget", "decided", "interrupted"]),
    st.sampled_from(get_args(FailOn)),
)
def test_all_that_the_base_has_is_judged_or_the_job_is_not_green(drawn, limits, stopped, fail_on):
    comparison = judged(KNOWN, measure(drawn, stopped), limits=limits, fail_on=fail_on)

    if list(list_unanswered(drawn, comparison, limits)):
        assert comparison.exit_code in {ExitCode.NO_ANSWER, ExitCode.REGRESSED}
