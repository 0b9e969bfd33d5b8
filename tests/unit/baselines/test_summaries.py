"""What a change has accepted since its base, by the files of both."""

from ci_perf.baselines import summaries
from ci_perf.baselines.accept import Mode
from ci_perf.model import metrics
from tests import accepting
from tests.runs import CPU, SLOW, STEADY, a_measured, a_run

ALL = (*(metric.name for metric in metrics.JUDGED), metrics.FINGERPRINT)


def since(root, base):
    return summaries.find_accepted_since(root, base, CPU, "smoke")


def with_baseline(root):
    accepting.accepted(root, a_run(a_measured("a", *STEADY), id="1"))
    return root


def test_a_session_that_was_appended_accepts_nothing(tmp_path):
    base, head = (with_baseline(tmp_path / name) for name in ("base", "head"))
    accepting.accepted(head, a_run(a_measured("a", *STEADY), id="2"), mode=Mode.APPEND)

    assert since(head, base) == {}


def test_a_new_epoch_accepts_its_metrics(tmp_path):
    base, head = (with_baseline(tmp_path / name) for name in ("base", "head"))
    slower = a_run(a_measured("a", *SLOW), id="2")
    accepting.accepted(head, slower, reason="exact attention")

    assert "step_time_s" in since(head, base)["a"]
    assert "host_rss_peak_bytes" not in since(head, base)["a"]


def test_a_history_that_begins_anew_accepts_everything(tmp_path):
    base, head = (with_baseline(tmp_path / name) for name in ("base", "head"))
    again = a_run(a_measured("a", *STEADY), id="2")
    accepting.accepted(head, again, mode=Mode.REPLACE, reason="another machine room")

    assert since(head, base) == {"a": ALL}


def test_a_first_baseline_accepts_everything(tmp_path):
    head = with_baseline(tmp_path / "head")

    assert since(head, tmp_path / "base") == {"a": ALL}


def test_an_edited_baseline_is_shown_with_what_it_accepts_and_why(tmp_path):
    base, head = (with_baseline(tmp_path / name) for name in ("base", "head"))
    accepting.accepted(head, a_run(a_measured("a", *SLOW), id="2"), reason="exact attention")
    (edit,) = summaries.edits(base, head, "smoke")

    assert edit.workload == "a"
    assert edit.before["step_time_s"] < edit.after["step_time_s"]
    assert "step_time_s" in edit.accepted
    assert edit.reason == "exact attention"


def test_baselines_that_are_the_same_or_of_another_suite_are_not_edited(tmp_path):
    base, head = (with_baseline(tmp_path / name) for name in ("base", "head"))
    accepting.accepted(head, a_run(a_measured("a", *STEADY), suite="other", id="2"))

    assert summaries.edits(base, head, "smoke") == ()


def test_a_baseline_that_is_new_accepts_nothing_and_one_that_is_gone_has_no_numbers(tmp_path):
    full, empty = with_baseline(tmp_path / "full"), tmp_path / "empty"
    ((new,), (gone,)) = (
        summaries.edits(*sides, "smoke") for sides in ((empty, full), (full, empty))
    )

    assert (new.before, gone.after, gone.accepted) == ({}, {}, ())
