import datetime as dt
import difflib

import msgspec
import pytest

from ci_perf.baselines.accept import Action, Mode, find_orphans
from ci_perf.errors import InvalidFileError, RefusedError, UsageError
from ci_perf.judging.policy import default_limits
from ci_perf.model.comparison import Numerics, Verdict
from ci_perf.model.process import Fingerprint
from ci_perf.model.suite import Limit, Limits
from ci_perf.model.validity import Reason, Status, Validity, validity_of
from tests.accepting import accepted, against, contents, history, says_what_it_says
from tests.comparisons import a_plant
from tests.histories import in_turns, pairs
from tests.runs import (
    GPU,
    SLOW,
    STEADY,
    a_failed,
    a_gpu_evidence,
    a_measured,
    a_process,
    a_reason,
    a_run,
    an_environment,
    an_evidence,
    some_canaries,
)


def test_a_first_run_makes_a_file_per_workload(root):
    run = a_run(a_measured("a", *STEADY), a_measured("b.n=1", *STEADY))

    assert accepted(root, run) == {"a": Action.CREATED, "b.n=1": Action.CREATED}
    assert sorted(str(p.relative_to(root)) for p in root.rglob("*.json")) == [
        "cpu-amd-epyc-2-cores/smoke/a.json",
        "cpu-amd-epyc-2-cores/smoke/b.n=1.json",
    ]
    assert says_what_it_says(root, run)


@pytest.mark.parametrize(("hours", "is_refused"), [(23, False), (48, True)])
def test_a_run_of_a_clock_that_is_days_ahead_is_refused(root, hours, is_refused):
    started = dt.datetime(2026, 11, 21, 9, tzinfo=dt.UTC)
    run = msgspec.structs.replace(
        a_run(a_measured("a", *STEADY)), started_at=f"{started:%Y-%m-%dT%H:%M:%SZ}"
    )
    now = started - dt.timedelta(hours=hours)

    if is_refused:
        with pytest.raises(RefusedError, match=r"expected a start before now .*set the clock"):
            accepted(root, run, now=lambda: now)
        assert not contents(root)
    else:
        assert accepted(root, run, now=lambda: now) == {"a": Action.CREATED}


def test_accepting_twice_changes_no_byte(root):
    run = a_run(a_measured("a", *STEADY))
    accepted(root, run)
    before = contents(root)

    for mode in Mode:
        assert accepted(root, run, mode=mode) == {"a": Action.KEPT}
    assert contents(root) == before


def test_what_has_not_changed_stays_byte_identical(root):
    accepted(root, a_run(a_measured("a", *STEADY), a_measured("b", *SLOW), id="1"))
    before = contents(root)

    actions = accepted(root, a_run(a_measured("a", *STEADY), a_measured("b", *STEADY), id="2"))

    assert actions == {"a": Action.KEPT, "b": Action.NEW_EPOCH}
    assert contents(root)["a.json"] == before["a.json"]
    assert contents(root)["b.json"] != before["b.json"]


def test_history_grows_only_when_asked_and_never_beyond_twenty(root):
    for number in range(25):
        run = a_run(a_measured("a", *STEADY), id=f"run{number}")
        accepted(root, run, mode=Mode.APPEND)

    assert [s.run for s in history(root).sessions] == [f"run{n}" for n in range(5, 25)]


def test_a_worse_number_needs_a_reason_and_keeps_it(root):
    accepted(root, a_run(a_measured("a", *STEADY), id="1"))
    worse = a_run(a_measured("a", *SLOW), id="2")
    before = contents(root)

    with pytest.raises(UsageError, match=r"a step_time_s \+100\.0%.*--reason"):
        accepted(root, worse)
    with pytest.raises(UsageError):
        accepted(root, worse, reason="  ")
    assert contents(root) == before

    accepted(root, worse, reason="exact attention, #12")
    assert history(root).sessions[-1].reason == "exact attention, #12"


def test_a_count_that_was_zero_needs_a_reason_as_well(root):
    accepted(root, a_run(a_measured("a", *STEADY, graphs=1), id="1"))

    with pytest.raises(UsageError, match="a graph_breaks 0 → 2; say why with --reason"):
        accepted(root, a_run(a_measured("a", *STEADY, graphs=3, breaks=2), id="2"))


@pytest.mark.parametrize(
    "other",
    [{"parameters": {"n": 2}}, {"items_per_step": 4.0}],
)
def test_what_starts_afresh_needs_a_reason_as_well(root, other):
    """It cannot be compared, so it may hide any loss."""
    accepted(root, a_run(a_measured("a", *STEADY, parameters={"n": 1}), id="1"))
    before = contents(root)
    slower = msgspec.structs.replace(a_measured("a", *SLOW, parameters={"n": 1}), **other)

    with pytest.raises(UsageError, match=r"loses its history.*a \((other|a step) .*--reason"):
        accepted(root, a_run(slower, id="2"))
    assert contents(root) == before
    assert accepted(root, a_run(slower, id="2"), reason="more layers") == {"a": Action.REPLACED}


def test_a_reason_is_a_sentence_and_no_book(root):
    with pytest.raises(UsageError, match="at most 500 characters, found 501"):
        accepted(root, a_run(a_measured("a", *STEADY)), reason="x" * 501)
    assert not root.exists()


def test_an_invalid_run_is_refused_with_its_reason(root):
    reason = Reason(code="low_disk", status=Status.INVALID, detail="nothing left")
    run = a_run(
        a_measured("a", *STEADY), validity=Validity(status=Status.INVALID, reasons=(reason,))
    )

    with pytest.raises(RefusedError, match="low_disk: nothing left"):
        accepted(root, run, reason="please")
    assert not root.exists()


def test_a_run_that_was_slowed_down_on_purpose_is_refused(root):
    run = in_turns(a_run(a_measured("w", *SLOW)), pairs(2.0), planted=a_plant("w"))

    with pytest.raises(InvalidFileError, match=r"a plant: ci-perf made w worse on purpose"):
        accepted(root, run, reason="please", force=True)
    assert not root.exists()


def test_a_failed_workload_is_refused_unless_the_others_are_named(root):
    run = a_run(a_measured("a", *STEADY), a_failed("b", "CUDA error"))

    with pytest.raises(RefusedError, match=r"b: CUDA error.*--workload"):
        accepted(root, run)
    with pytest.raises(RefusedError):
        accepted(root, run, workloads=["b"])
    assert accepted(root, run, workloads=["a"]) == {"a": Action.CREATED}


def test_an_unknown_workload_is_named_with_the_nearest(root):
    with pytest.raises(UsageError, match="did you mean 'matmul'"):
        accepted(root, a_run(a_measured("matmul", *STEADY)), workloads=["matmull"])


def test_another_machine_gets_its_own_folder_and_is_incomparable_until_then(root):
    accepted(root, a_run(a_measured("a", *STEADY), id="1"))
    elsewhere = a_run(a_measured("a", *STEADY), id="2", environment=an_environment(hard=GPU))

    assert against(root, elsewhere).verdict is Verdict.INCONCLUSIVE
    assert accepted(root, elsewhere) == {"a": Action.CREATED}
    assert says_what_it_says(root, elsewhere)


def test_the_diff_of_an_accepted_change_names_metric_before_and_after(root):
    accepted(root, a_run(a_measured("a", *STEADY), id="1"))
    before = contents(root)["a.json"].decode().splitlines()

    accepted(root, a_run(a_measured("a", *SLOW), id="2"), reason="exact attention")

    after = contents(root)["a.json"].decode().splitlines()
    _, _, *diff = difflib.unified_diff(before, after, n=0, lineterm="")
    changed = [line for line in diff if line[0] in "+-"]
    assert changed[:4] == [
        '-    "step_p95_s": 0.001,',
        '-    "step_time_s": 0.001',
        '+    "step_p95_s": 0.002,',
        '+    "step_time_s": 0.002',
    ]
    assert '+      "epochs": {"first_step_s": 1, "step_p95_s": 1, "step_time_s": 1},' in changed
    assert '+      "reason": "exact attention",' in changed
    assert len(changed) < 23


GATED = Limits(default={**default_limits(), "fingerprint": Limit(relative=1e-3)})
LOSSES = (2.302585092994046, 2.295412345678901)
OTHER = (2.302585092994046, 2.31)


def session(*step_s, losses=LOSSES, **more):
    return a_run(a_measured("a", *step_s, losses=losses), canaries=some_canaries(), **more)


def test_a_baseline_keeps_what_the_first_process_computed_and_the_canaries(root):
    accepted(root, session(*STEADY))

    (kept,) = history(root).sessions
    assert kept.fingerprint is not None
    assert kept.fingerprint.losses == (2.30258509, 2.29541235)
    assert kept.canaries == {"matmul before": 1e-3, "matmul after": 1e-3}


def test_a_first_process_that_had_no_time_for_a_fingerprint_leaves_it_to_the_next(root):
    run = session(*STEADY)
    (workload,) = run.measured
    first, *others = workload.processes
    late = msgspec.structs.replace(first, fingerprint=Fingerprint(absent="too long"))
    workload = msgspec.structs.replace(workload, processes=(late, *others))
    accepted(root, msgspec.structs.replace(run, measured=(workload,)))

    (kept,) = history(root).sessions
    assert kept.fingerprint is not None
    assert kept.fingerprint.losses == (2.30258509, 2.29541235)


def test_numerics_are_the_same_against_their_own_rounded_baseline(root):
    accepted(root, session(*STEADY))
    comparison = against(root, session(*STEADY))

    (row,) = (row for row in comparison.rows if isinstance(row, Numerics))
    assert (row.verdict, row.code) == (Verdict.UNCHANGED, "within_limit")
    assert row.difference == pytest.approx(0, abs=1e-8)
    assert comparison.exit_code == 0


def test_a_workload_without_losses_has_no_fingerprint_to_keep(root):
    accepted(root, session(*STEADY, losses=()))

    (kept,) = history(root).sessions
    assert kept.fingerprint is None


def test_gated_numerics_that_changed_need_a_reason_and_the_speed_keeps_its_history(root):
    accepted(root, session(*STEADY, id="1"))
    other = session(*STEADY, losses=OTHER, id="2")

    with pytest.raises(UsageError, match=r"a \(numerics changed\).*--reason"):
        accepted(root, other, limits=GATED)
    assert accepted(root, other, limits=GATED, reason="another schedule") == {"a": Action.APPENDED}
    assert against(root, other, GATED).exit_code == 0
    assert history(root).sessions[-1].epochs == {"fingerprint": 1}


def test_numerics_without_a_gate_are_accepted_by_appending_and_the_speed_keeps_its_history(root):
    accepted(root, session(*STEADY, id="1"))
    other = session(*STEADY, losses=OTHER, id="2")

    assert accepted(root, other) == {"a": Action.KEPT}
    assert accepted(root, other, mode=Mode.APPEND) == {"a": Action.APPENDED}
    assert says_what_it_says(root, other)
    assert not [r for r in against(root, other).rows if r.verdict is Verdict.NUMERICS_CHANGED]


def test_numerics_that_vary_would_do_so_against_any_baseline_and_replace_none(root):
    accepted(root, session(*STEADY, id="1"))
    varying = msgspec.structs.replace(
        a_measured("a", *STEADY),
        processes=tuple(a_process(i, losses=(*LOSSES[:1], 2.2954 + i * 1e-9)) for i in range(3)),
    )

    assert accepted(root, a_run(varying, id="2"), limits=GATED) == {"a": Action.KEPT}


def test_a_figure_of_the_monitor_that_is_gone_costs_no_history_and_needs_no_reason(root):
    watched = an_evidence(a_gpu_evidence())
    accepted(root, a_run(a_measured("a", *STEADY, evidence=watched), id="1"))

    assert accepted(root, a_run(a_measured("a", *STEADY), id="2")) == {"a": Action.KEPT}


def test_a_run_of_which_one_workload_is_invalid_is_refused_whole(root):
    validity = validity_of((a_reason(workload="b"),))

    with pytest.raises(RefusedError, match="clocks_held_down"):
        accepted(root, session(*STEADY, validity=validity))


def test_what_its_pairs_prove_to_be_worse_needs_a_reason_also_without_a_baseline(root):
    """Deleting the baseline in the same change hides nothing."""
    proven = in_turns(a_run(a_measured("w", *SLOW), id="2"), pairs(2.0))

    with pytest.raises(UsageError, match="w step_time_s"):
        accepted(root, proven)
    assert accepted(root, proven, reason="exact attention") == {"w": Action.CREATED}


def test_replacing_forgets_the_history_also_of_a_session_that_is_part_of_it(root):
    for number in "123":
        accepted(root, a_run(a_measured("a", *STEADY), id=number), mode=Mode.APPEND)
    last = a_run(a_measured("a", *STEADY), id="3")

    assert accepted(root, last, mode=Mode.REPLACE, reason="anew") == {"a": Action.REPLACED}
    assert accepted(root, last, mode=Mode.REPLACE, reason="anew") == {"a": Action.KEPT}


def test_a_baseline_without_its_workload_is_removed_and_computes_nothing_else(root):
    accepted(root, a_run(a_measured("a", *STEADY), a_measured("gone", *STEADY)))

    (found,) = find_orphans(root, "smoke", {"a"})
    assert (found.workload, found.action, found.changed_numerics) == ("gone", Action.REMOVED, False)
