import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ci_perf.baselines import accept, summaries
from ci_perf.baselines.accept import Action, Mode
from ci_perf.errors import ExitCode, UsageError
from ci_perf.judging import metric_values
from ci_perf.model import metrics
from ci_perf.model.comparison import Change, Verdict
from tests.accepting import accepted, against, history
from tests.comparisons import a_change, a_comparison, verdicts_of
from tests.runs import MIB, SLOW, STEADY, a_device_memory, a_measured, a_run

# The metrics that move when steps take another time.
STEP_EPOCH = {"first_step_s": 1, "step_p95_s": 1, "step_time_s": 1}


def test_a_change_begins_a_new_epoch_and_keeps_the_sessions_before(root):
    for number in range(3):
        run = a_run(a_measured("a", *SLOW), id=f"run{number}")
        accepted(root, run, mode=Mode.APPEND)

    accepted(root, a_run(a_measured("a", *STEADY), id="fast"))

    found = history(root)
    assert [session.run for session in found.sessions] == ["run0", "run1", "run2", "fast"]
    assert [session.epochs for session in found.sessions] == [{}, {}, {}, STEP_EPOCH]
    assert found.headline["step_time_s"] == pytest.approx(STEADY[0], rel=1e-3)


@pytest.mark.parametrize(
    ("verdict", "epochs"),
    [(Verdict.REGRESSED, {"step_p95_s": 1, "step_time_s": 1}), (Verdict.UNCHANGED, {})],
)
def test_the_tail_of_a_step_begins_its_epoch_with_the_step(root, verdict, epochs):
    """Pairs prove a change of the step's time; of its tail, which does not gate, nothing."""
    accepted(root, a_run(a_measured("a", *STEADY), id="1"))
    rows = [
        a_change("a", verdict, ratio=1.05),
        a_change("a", Verdict.INCONCLUSIVE, metric=metrics.STEP_P95, gate=False),
    ]

    files = accept.prepare(
        root,
        a_run(a_measured("a", *STEADY), id="2"),
        a_comparison(*rows),
        reason="worth it",
        mode=Mode.APPEND,
    )

    assert [file.baseline.sessions[-1].epochs for file in files] == [epochs]


def test_only_the_metrics_that_moved_begin_a_new_epoch(root):
    accepted(root, a_run(a_measured("a", *SLOW, breaks=3), id="1"))
    accepted(root, a_run(a_measured("a", *STEADY, breaks=3), id="2"))
    accepted(root, a_run(a_measured("a", *STEADY, breaks=1), id="3"))

    subject = summaries.subject(history(root))
    assert [session.epochs for session in subject.sessions] == [
        {},
        STEP_EPOCH,
        {"graph_breaks": 1, **STEP_EPOCH},
    ]
    assert len(metric_values.list_current_epoch(subject, metrics.STEP_TIME)) == 2
    assert len(metric_values.list_current_epoch(subject, metrics.GRAPH_BREAKS)) == 1
    assert len(metric_values.list_current_epoch(subject, metrics.HOST_RSS_PEAK)) == 3


def test_a_session_that_is_appended_joins_the_current_epoch(root):
    accepted(root, a_run(a_measured("a", *SLOW), id="1"))
    accepted(root, a_run(a_measured("a", *STEADY), id="2"))

    assert accepted(root, a_run(a_measured("a", *STEADY), id="3"), mode=Mode.APPEND) == {
        "a": Action.APPENDED
    }
    assert history(root).sessions[-1].epochs == STEP_EPOCH


def test_what_moves_without_a_gate_begins_its_epoch_when_a_session_is_appended(root):
    accepted(root, a_run(a_measured("a", *STEADY, graphs=2), id="1"))
    other = a_run(a_measured("a", *STEADY, graphs=5), id="2")

    assert accepted(root, other) == {"a": Action.KEPT}
    assert accepted(root, other, mode=Mode.APPEND) == {"a": Action.NEW_EPOCH}
    assert history(root).sessions[-1].epochs == {"graphs": 1}


def test_what_is_only_predicted_joins_its_epoch_where_sessions_are_just_collected(root):
    """A person says that it is the new baseline; a job that appends says how sessions differ."""
    accepted(root, a_run(a_measured("a", *STEADY), id="1"))
    other = a_run(a_measured("a", *SLOW), id="2")
    assert verdicts_of(against(root, other), "a")["step_time_s"] is Verdict.LIKELY_SLOWER

    assert accepted(root, other, mode=Mode.APPEND) == {"a": Action.APPENDED}
    assert history(root).sessions[-1].epochs == {}


def test_what_is_likely_slower_begins_an_epoch_where_a_person_accepts_it(root):
    accepted(root, a_run(a_measured("a", *STEADY, operators=7), id="1"))
    other = a_run(a_measured("a", *SLOW, operators=9), id="2")
    assert verdicts_of(against(root, other), "a")["step_time_s"] is Verdict.LIKELY_SLOWER

    with pytest.raises(UsageError, match=r"step_time_s \+100.0%.*--reason"):
        accepted(root, other)
    accepted(root, other, reason="exact attention")

    assert history(root).sessions[-1].epochs == {**STEP_EPOCH, "operators": 1}
    assert against(root, other).exit_code == ExitCode.OK


@pytest.mark.parametrize(("mode", "began"), [(Mode.KEEP, ("step_time_s",)), (Mode.APPEND, ())])
def test_what_other_packages_have_moved_begins_an_epoch_where_a_person_accepts_it(
    root, mode, began
):
    accepted(root, a_run(a_measured("a", *STEADY), id="1"))
    moved = a_change("a", Verdict.INCONCLUSIVE, code="other_packages", ratio=2.0)

    (file,) = accept.prepare(
        root,
        a_run(a_measured("a", *SLOW), id="2"),
        a_comparison(moved),
        reason="a newer library",
        mode=mode,
    )

    assert file.began == began


def test_a_metric_that_is_accepted_to_be_gone_is_not_missing_again_and_may_come_back(root):
    with_memory = a_measured("a", *STEADY, device=a_device_memory())
    accepted(root, a_run(with_memory, id="1"))
    without = a_run(a_measured("a", *STEADY), id="2")
    assert against(root, without).exit_code == ExitCode.NO_ANSWER

    with pytest.raises(UsageError, match=r"missing: peak_allocated_bytes.*--reason"):
        accepted(root, without)
    accepted(root, without, reason="measured on the CPU now")
    assert against(root, without).exit_code == ExitCode.OK

    assert accepted(root, a_run(with_memory, id="3")) == {"a": Action.APPENDED}
    assert history(root).headline["peak_allocated_bytes"] == MIB


def test_a_metric_without_a_gate_may_go_without_a_reason(root):
    accepted(root, a_run(a_measured("a", *STEADY, operators=7), id="1"))
    without = a_run(a_measured("a", *SLOW), id="2")
    missing = {row.metric: row.gate for row in against(root, without).rows if not row.gate}
    assert missing["operators"] is False

    assert accepted(root, without, mode=Mode.APPEND) == {"a": Action.APPENDED}


def test_to_replace_forgets_every_epoch(root):
    accepted(root, a_run(a_measured("a", *SLOW), id="1"))
    accepted(root, a_run(a_measured("a", *STEADY), id="2"))

    accepted(root, a_run(a_measured("a", *STEADY), id="3"), mode=Mode.REPLACE, reason="moved")

    (only,) = history(root).sessions
    assert (only.run, only.epochs) == ("3", {})


@settings(max_examples=25)
@given(st.lists(st.sampled_from([0.5, 0.7, 1.0, 1.01, 1.4, 2.0]), min_size=1, max_size=6))
def test_what_was_accepted_is_not_told_again(factors):
    """Whatever happened before: a metric that moved is compared with the run that moved it."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "baselines")
        for number, factor in enumerate(factors):
            run = a_run(a_measured("a", *(factor * s for s in STEADY)), id=f"run{number}")
            (found,) = accept.prepare(root, run, against(root, run), reason="it is meant")
            accept.write(root, [found])

            changes = [row for row in against(root, run).rows if isinstance(row, Change)]
            assert not found.began or found.action is Action.NEW_EPOCH
            for row in changes:
                assert not row.gate or row.verdict in {Verdict.UNCHANGED, Verdict.INCONCLUSIVE}
                assert row.metric not in found.began or row.ratio == pytest.approx(1, rel=1e-5)
