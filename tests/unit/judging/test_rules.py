"""One owner: a verdict, a gate and an exit code change in `judging/rules.py` and nowhere else."""

import ast
from pathlib import Path

import pytest

from ci_perf.judging import rules
from ci_perf.judging.candidates import Candidate, Fact, Judgement
from ci_perf.model.comparison import Code, Interval, Verdict
from ci_perf.model.metrics import STEP_CPU, STEP_TIME
from ci_perf.model.suite import Limit
from ci_perf.model.summary import PairedNumbers
from tests.comparisons import a_change
from tests.runs import VALID

PACKAGE = Path(__file__).parents[3] / "ci_perf"
OWNER = PACKAGE / "judging" / "rules.py"
DECIDING = {"verdict", "gate", "code", "exit_code"}
# A limit of suite.toml has a gate, and a process an exit code: neither is an answer.
OTHERS = {
    "suite.py",
    "model/suite.py",
    "features/bisect/bisecting.py",
    "features/containers/launch/running.py",
}


def find_changes(source):
    """Return the lines in which a copy gets another verdict, code, gate or exit code."""
    return [
        node.lineno
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func).rpartition(".")[2] in {"replace", "__replace__"}
        and (DECIDING & {each.arg for each in node.keywords} or _is_spread(node))
    ]


def _is_spread(call):
    """Whether a copy gets fields by a dictionary that names one of these."""
    spread = [each.value for each in call.keywords if each.arg is None]
    names = {
        node.value for each in spread for node in ast.walk(each) if isinstance(node, ast.Constant)
    }
    return bool(DECIDING & names)


def test_only_the_rules_change_a_verdict_a_gate_or_an_exit_code():
    others = {
        str(path.relative_to(PACKAGE)): lines
        for path in PACKAGE.rglob("*.py")
        if path != OWNER and (lines := find_changes(path.read_text("utf-8")))
    }

    assert others.keys() <= OTHERS, others


@pytest.mark.parametrize(
    "source",
    [
        "msgspec.structs.replace(row, verdict=Verdict.UNCHANGED)",
        "replace(row, code=Code.ACCEPTED)",
        "structs.replace(comparison, exit_code=0)",
        "structs.replace(row, **{'gate': False})",
    ],
)
def test_a_change_elsewhere_would_be_found(source):
    assert find_changes(source)


def test_each_reason_code_is_given_by_the_judge():
    given = {
        node.attr
        for path in OWNER.parent.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "Code"
    }

    assert given == set(Code.__members__)


@pytest.mark.parametrize(
    ("verdict", "drift", "code"),
    [
        (Verdict.UNCHANGED, 1.015, Code.OTHER_PACKAGES),
        (Verdict.UNCHANGED, 1.005, Code.WITHIN_LIMIT),
        (Verdict.INCONCLUSIVE, 1.015, Code.SPREAD),
    ],
)
def test_other_packages_explain_what_pairs_clear_and_the_history_shows(verdict, drift, code):
    """By more than half the limit of 2 %; beyond the limit, the history itself is shown."""
    candidate = Candidate(
        workload="mlp",
        metric=STEP_TIME,
        limit=Limit(relative=0.02),
        history=None,
        head=(),
        pairs=[(1.0, 1.0)] * 9,
        facts=frozenset({Fact.OTHER_PACKAGES}),
    )
    (judged,) = rules.judge(
        [
            Judgement(
                candidate=candidate,
                change=a_change(verdict=verdict, pairs=9, drift=drift),
                past=a_change(ratio=drift),
                is_open=False,
                expected_pairs=0.0,
            )
        ]
    )

    assert judged.row.code is code


@pytest.mark.parametrize(("pairs", "code"), [(3, Code.TOO_FEW_PAIRS), (6, Code.SPREAD)])
def test_what_is_far_slower_after_fewer_pairs_than_an_alarm_needs_had_too_few(pairs, code):
    row = a_change(verdict=Verdict.LIKELY_SLOWER, code=Code.SPREAD, ratio=1.3, pairs=pairs)

    assert [each.code for each in rules.judge_workloads([row], VALID)] == [code]


@pytest.mark.parametrize(
    ("verdict", "code"),
    [(Verdict.INCONCLUSIVE, Code.BASE_FAILED), (Verdict.REGRESSED, Code.BEYOND_LIMIT)],
)
def test_a_base_that_fails_at_last_takes_back_nothing_that_is_proven(verdict, code):
    candidate = Candidate(
        workload="mlp",
        metric=STEP_TIME,
        limit=Limit(relative=0.02),
        history=None,
        head=(),
        paired=PairedNumbers(pairs=(), failure="boom"),
    )
    (judged,) = rules.judge(
        [
            Judgement(
                candidate=candidate,
                change=a_change(verdict=verdict, ratio=1.1, pairs=6),
                is_open=False,
                expected_pairs=0.0,
            )
        ]
    )

    assert judged.row.code is code


@pytest.mark.parametrize(("high", "gates"), [(1.01, False), (1.03, True), (None, True)])
def test_a_wall_that_excludes_a_loss_contradicts_cpu_time(high, gates):
    """It has no answer, for it may be much faster; its limit is 2 %."""
    interval = Interval(low=0.7, high=high) if high else None
    sides = (
        (STEP_TIME, {"verdict": Verdict.INCONCLUSIVE, "ratio": 0.9, "interval": interval}),
        (STEP_CPU, {"verdict": Verdict.REGRESSED, "ratio": 1.1}),
    )
    judgements = [
        Judgement(
            candidate=Candidate(
                workload="mlp", metric=metric, limit=Limit(relative=0.02), history=None, head=()
            ),
            change=a_change(metric=metric, pairs=9, **change),
            is_open=False,
            expected_pairs=0.0,
        )
        for metric, change in sides
    ]

    _, cpu = rules.judge(judgements)

    assert cpu.row.gate is gates


@pytest.mark.parametrize(
    ("verdict", "pairs", "said"),
    [
        (Verdict.INCONCLUSIVE, 9, Verdict.REGRESSED),
        (Verdict.UNCHANGED, 0, Verdict.REGRESSED),  # by the history alone
        (Verdict.UNCHANGED, 6, Verdict.REGRESSED),
        (Verdict.UNCHANGED, 9, Verdict.UNCHANGED),
        (Verdict.IMPROVED, 9, Verdict.IMPROVED),
    ],
)
def test_what_six_earlier_pairs_have_proven_is_taken_back_by_more_pairs_alone(verdict, pairs, said):
    candidate = Candidate(
        workload="mlp",
        metric=STEP_TIME,
        limit=Limit(relative=0.02),
        history=None,
        head=(),
        pairs=[(1.0, 1.0)] * 9,
        earlier=(6,),
        said=Verdict.REGRESSED,
    )
    (judged,) = rules.judge(
        [
            Judgement(
                candidate=candidate,
                change=a_change(verdict=verdict, pairs=pairs),
                is_open=False,
                expected_pairs=0.0,
            )
        ]
    )

    assert judged.row.verdict is said
