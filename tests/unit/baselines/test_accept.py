import json
import subprocess

import msgspec
import pytest

from ci_perf.baselines import accept, layout, summarise
from ci_perf.baselines.accept import Action, Mode
from ci_perf.errors import InvalidFileError, RefusedError, UsageError
from ci_perf.judge import compare
from ci_perf.judge import summarise as judged
from ci_perf.judge.limits import DEFAULT
from ci_perf.model import validity as validities
from ci_perf.model.comparison import Numerics, Verdict
from ci_perf.model.suite import Limit, Limits
from ci_perf.model.validity import Reason, Status, Validity
from tests.runs import (
    CPU,
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

FAST = tuple(s / 2 for s in STEADY)


@pytest.fixture
def root(tmp_path):
    return tmp_path / "baselines"


def against(root, run, limits=None):
    base = summarise.baselines(root, run.environment.hard, run.suite)
    return compare.compare(base, judged.run(run, label="run.json"), limits=limits)


def accepted(root, run, *, limits=None, **options):
    """Accept for real; return the action per workload."""
    found = accept.prepare(root, run, against(root, run, limits), **options)
    accept.write(root, found)
    return {a.workload: a.action for a in found}


def contents(root):
    return {path.name: path.read_bytes() for path in root.rglob("*.json")}


def test_a_first_run_makes_a_file_per_workload(root):
    run = a_run(a_measured("a", *STEADY), a_measured("b.n=1", *STEADY))

    assert accepted(root, run) == {"a": Action.CREATED, "b.n=1": Action.CREATED}
    assert sorted(str(p.relative_to(root)) for p in root.rglob("*.json")) == [
        "cpu-amd-epyc-2-cores/smoke/a.json",
        "cpu-amd-epyc-2-cores/smoke/b.n=1.json",
    ]
    assert against(root, run).verdict is Verdict.UNCHANGED


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

    assert actions == {"a": Action.KEPT, "b": Action.REPLACED}
    assert contents(root)["a.json"] == before["a.json"]
    assert contents(root)["b.json"] != before["b.json"]


def test_history_grows_only_when_asked_and_never_beyond_twenty(root):
    for number in range(25):
        run = a_run(a_measured("a", *STEADY), id=f"run{number}")
        accepted(root, run, mode=Mode.APPEND)

    found = layout.read(layout.path(root, CPU, "smoke", "a"))
    assert [s.run for s in found.sessions] == [f"run{n}" for n in range(5, 25)]


def test_a_change_starts_anew(root):
    for number in range(3):
        run = a_run(a_measured("a", *SLOW), id=f"run{number}")
        accepted(root, run, mode=Mode.APPEND)

    accepted(root, a_run(a_measured("a", *STEADY), id="fast"), mode=Mode.APPEND)

    found = layout.read(layout.path(root, CPU, "smoke", "a"))
    assert [session.run for session in found.sessions] == ["fast"]


def test_a_worse_number_needs_a_reason_and_keeps_it(root):
    accepted(root, a_run(a_measured("a", *STEADY), id="1"))
    worse = a_run(a_measured("a", *SLOW), id="2")
    before = contents(root)

    with pytest.raises(RefusedError, match=r"a step_time_s \+100\.0%.*--reason"):
        accepted(root, worse)
    with pytest.raises(RefusedError):
        accepted(root, worse, reason="  ")
    assert contents(root) == before

    accepted(root, worse, reason="exact attention, #12")
    found = layout.read(layout.path(root, CPU, "smoke", "a"))
    assert found.sessions[0].reason == "exact attention, #12"


@pytest.mark.parametrize(
    "other",
    [{"parameters": {"n": 2}}, {"items_per_step": 4.0}],
)
def test_what_starts_afresh_needs_a_reason_as_well(root, other):
    """It cannot be compared, so it may hide any loss."""
    accepted(root, a_run(a_measured("a", *STEADY, parameters={"n": 1}), id="1"))
    before = contents(root)
    slower = msgspec.structs.replace(a_measured("a", *SLOW, parameters={"n": 1}), **other)

    with pytest.raises(RefusedError, match=r"starts afresh.*a \(other .*--reason"):
        accepted(root, a_run(slower, id="2"))
    assert contents(root) == before
    assert accepted(root, a_run(slower, id="2"), reason="more layers") == {"a": Action.REPLACED}


def test_a_reason_is_a_sentence_and_no_book(root):
    with pytest.raises(UsageError, match="at most 500 characters, found 501"):
        accepted(root, a_run(a_measured("a", *STEADY)), reason="x" * 501)
    assert not root.exists()


def test_a_better_number_needs_none(root):
    accepted(root, a_run(a_measured("a", *STEADY), id="1"))

    assert accepted(root, a_run(a_measured("a", *FAST), id="2")) == {"a": Action.REPLACED}


def test_an_invalid_run_is_refused_with_its_reason(root):
    reason = Reason(code="low_disk", status=Status.INVALID, detail="nothing left")
    run = a_run(
        a_measured("a", *STEADY), validity=Validity(status=Status.INVALID, reasons=(reason,))
    )

    with pytest.raises(RefusedError, match="low_disk: nothing left"):
        accepted(root, run, reason="please")
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


def test_other_parameters_replace_the_baseline(root):
    accepted(root, a_run(a_measured("a", *STEADY, parameters={"n": 1}), id="1"))

    actions = accepted(
        root, a_run(a_measured("a", *STEADY, parameters={"n": 2}), id="2"), reason="more layers"
    )

    assert actions == {"a": Action.REPLACED}


def test_another_machine_gets_its_own_folder_and_is_incomparable_until_then(root):
    accepted(root, a_run(a_measured("a", *STEADY), id="1"))
    elsewhere = a_run(a_measured("a", *STEADY), id="2", environment=an_environment(hard=GPU))

    assert against(root, elsewhere).verdict is Verdict.INCOMPARABLE
    assert accepted(root, elsewhere) == {"a": Action.CREATED}
    assert against(root, elsewhere).verdict is Verdict.UNCHANGED


def test_the_diff_of_an_accepted_change_names_metric_before_and_after(root, tmp_path):
    accepted(root, a_run(a_measured("a", *STEADY), id="1"))
    git = ["git", "-C", str(tmp_path), "-c", "user.name=t", "-c", "user.email=t@example.org"]
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-qm", "baseline"]):
        subprocess.run([*git, *arguments], check=True)

    accepted(root, a_run(a_measured("a", *SLOW), id="2"), reason="exact attention")

    diff = subprocess.run([*git, "diff", "-U0"], check=True, capture_output=True, text=True).stdout
    changed = [
        line for line in diff.splitlines() if line[0] in "+-" and line[:3] not in {"+++", "---"}
    ]
    assert changed[:2] == ['-    "step_time_s": 0.001', '+    "step_time_s": 0.002']
    assert '+      "reason": "exact attention",' in changed
    assert len(changed) < 16


GATED = Limits(default={**DEFAULT, "fingerprint": Limit(relative=1e-3)})
LOSSES = (2.302585092994046, 2.295412345678901)
OTHER = (2.302585092994046, 2.31)


def session(*step_s, losses=LOSSES, **more):
    return a_run(a_measured("a", *step_s, losses=losses), canaries=some_canaries(), **more)


def test_a_baseline_keeps_what_the_first_process_computed_and_the_canaries(root):
    accepted(root, session(*STEADY))

    (kept,) = layout.read(layout.path(root, CPU, "smoke", "a")).sessions
    assert kept.fingerprint is not None
    assert kept.fingerprint.losses == (2.30258509, 2.29541235)
    assert kept.canaries == {"matmul": 1e-3}


def test_numerics_are_the_same_against_their_own_rounded_baseline(root):
    accepted(root, session(*STEADY))
    comparison = against(root, session(*STEADY))

    (row,) = (row for row in comparison.rows if isinstance(row, Numerics))
    assert (row.verdict, row.code) == (Verdict.UNCHANGED, "same_numerics")
    assert row.difference == pytest.approx(0, abs=1e-8)
    assert comparison.exit_code == 0


def test_a_workload_without_losses_has_no_fingerprint_to_keep(root):
    accepted(root, session(*STEADY, losses=()))

    (kept,) = layout.read(layout.path(root, CPU, "smoke", "a")).sessions
    assert kept.fingerprint is None


def test_gated_numerics_that_changed_need_a_reason_and_replace_the_baseline(root):
    accepted(root, session(*STEADY, id="1"))
    other = session(*STEADY, losses=OTHER, id="2")

    with pytest.raises(RefusedError, match=r"a \(numerics changed\).*--reason"):
        accepted(root, other, limits=GATED)
    assert accepted(root, other, limits=GATED, reason="another schedule") == {"a": Action.REPLACED}
    assert against(root, other, GATED).exit_code == 0


def test_numerics_without_a_gate_are_accepted_by_appending_and_the_speed_keeps_its_history(root):
    accepted(root, session(*STEADY, id="1"))
    other = session(*STEADY, losses=OTHER, id="2")

    assert accepted(root, other) == {"a": Action.KEPT}
    assert accepted(root, other, mode=Mode.APPEND) == {"a": Action.APPENDED}
    assert against(root, other).verdict is Verdict.UNCHANGED
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
    validity = validities.of((a_reason(workload="b"),))

    with pytest.raises(RefusedError, match="clocks_held_down"):
        accepted(root, session(*STEADY, validity=validity))


def test_the_session_of_a_baseline_reads_line_by_line(root):
    accepted(root, session(*STEADY))

    lines = layout.path(root, CPU, "smoke", "a").read_text().splitlines()
    assert '      "canaries": {"matmul": 0.001},' in lines
    assert '        "losses": [2.30258509, 2.29541235],' in lines
    assert sum(line.lstrip().startswith('{"first_step_s"') for line in lines) == len(STEADY)
    assert '    "step_p05_s"' not in "\n".join(lines)


def test_a_canary_that_took_no_time_is_refused(root):
    accepted(root, session(*STEADY))
    path = layout.path(root, CPU, "smoke", "a")
    path.write_text(path.read_text().replace('{"matmul": 0.001}', '{"matmul": 0}'))

    with pytest.raises(InvalidFileError, match=r"canaries\.matmul: expected a number > 0"):
        layout.read(path)


def edited(root, edit):
    accepted(root, a_run(a_measured("a", *STEADY)))
    path = layout.path(root, CPU, "smoke", "a")
    data = json.loads(path.read_text())
    edit(data)
    path.write_text(json.dumps(data))
    return path


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda d: d["headline"].update(step_time_s=9), r"headline: .*do not edit it by hand"),
        (lambda d: d.update(workload="b"), r"\$\.workload: expected 'a', as the file is called"),
        (
            lambda d: d["sessions"][0]["processes"][0].update(step_time_s=-1),
            r"processes\[0\]\.step_time_s: expected a number > 0.*, found -1",
        ),
        (
            lambda d: d["sessions"][0]["processes"][0].update(step_tme_s=1),
            r"unknown metric 'step_tme_s'; did you mean 'step_time_s'\?",
        ),
        (lambda d: d.update(sessions=[]), r"sessions"),
        (lambda d: d.update(suite="other"), r"\$\.suite: expected 'smoke', as the folder"),
        (
            lambda d: d["sessions"][0]["processes"][0].update(step_time_s=5e-324),
            r"step_time_s: expected a number > 0",
        ),
        (
            lambda d: d["sessions"][0]["processes"][0].update(host_rss_peak_bytes=1e308),
            r"host_rss_peak_bytes: expected a number > 0, up to 1e\+18",
        ),
    ],
)
def test_a_baseline_edited_by_hand_says_what_is_wrong(root, edit, message):
    path = edited(root, edit)

    with pytest.raises(InvalidFileError, match=message) as caught:
        layout.read(path)
    assert str(caught.value).startswith(str(path))
