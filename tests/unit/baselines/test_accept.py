import json
import subprocess

import msgspec
import pytest

from ci_perf.baselines import accept, layout, summarise
from ci_perf.baselines.accept import Action, Mode
from ci_perf.errors import InvalidFileError, RefusedError, UsageError
from ci_perf.judge import compare
from ci_perf.judge import summarise as judged
from ci_perf.model.comparison import Verdict
from ci_perf.model.run import Reason, Status, Validity
from tests.runs import CPU, GPU, SLOW, STEADY, a_failed, a_measured, a_run, an_environment

FAST = tuple(s / 2 for s in STEADY)


@pytest.fixture
def root(tmp_path):
    return tmp_path / "baselines"


def against(root, run):
    base = summarise.baselines(root, run.environment.hard, run.suite)
    return compare.compare(base, judged.run(run, label="run.json"))


def accepted(root, run, **options):
    """Accept for real; return the action per workload."""
    found = accept.prepare(root, run, against(root, run), **options)
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
