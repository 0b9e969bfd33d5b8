"""Publishing called as a function: no command line, no network."""

import pytest

from ci_perf.errors import ExitCode, InvalidFileError, UsageError
from ci_perf.pull_request import publish, reports
from ci_perf.pull_request.reports import PublishOptions
from tests.comparisons import a_change, a_comparison, a_plant, an_interleaved

ON_GITHUB = {
    "GITHUB_ACTIONS": "true",
    "GITHUB_EVENT_NAME": "schedule",
    "GITHUB_REPOSITORY": "octo/model",
    "GITHUB_RUN_ID": "42",
    "GITHUB_SHA": "a" * 40,
}


def published(report, environment):
    shown, told = [], []
    problems = publish.publish(
        [report], PublishOptions(), environment=environment, show=shown.append, notify=told.append
    )
    return shown, told, problems


def test_outside_of_github_the_whole_report_is_shown():
    report = reports.make_report(a_comparison(a_change("mlp")), "comparison.json")
    (text,), told, problems = published(report, {})

    assert "### ✅ Pass" in text
    assert (told, problems) == ([], [])


def test_on_github_a_headline_is_shown_and_the_page_of_the_run_has_the_rest(tmp_path):
    report = reports.make_report(a_comparison(a_change("mlp")), "comparison.json")
    page = tmp_path / "summary.md"
    (text,), told, problems = published(report, {**ON_GITHUB, "GITHUB_STEP_SUMMARY": str(page)})

    assert text.startswith(report.name)
    assert "###" not in text
    assert "### ✅ Pass" in page.read_text(encoding="utf-8")
    assert told == ["no comment: no open pull request belongs to this event"]
    assert problems == []


def test_an_event_that_cannot_be_read_is_a_problem_and_no_error():
    report = reports.make_report(a_comparison(a_change("mlp")), "comparison.json")
    _, _, problems = published(report, {**ON_GITHUB, "GITHUB_SHA": "main"})

    assert problems == ["the event's commit: expected a SHA, found 'main'"]


def test_two_reports_of_one_suite_and_machine_cannot_share_a_comment():
    report = reports.make_report(a_comparison(a_change("mlp")), "comparison.json")

    with pytest.raises(UsageError, match=r"^again\.json: a second comparison of suite"):
        reports.check_apart([("first.json", report), ("again.json", report)], None)


def test_only_several_suites_need_several_keys():
    named = [
        (f"{suite}.json", reports.make_report(a_comparison(suite=suite), suite))
        for suite in ("smoke", "standard")
    ]

    reports.check_apart(named, None)
    reports.check_apart(named[:1], "cpu")
    with pytest.raises(UsageError, match="--key"):
        reports.check_apart(named, "cpu")


@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        ([ExitCode.OK, ExitCode.OK], ExitCode.OK),
        ([ExitCode.OK, ExitCode.NO_ANSWER], ExitCode.NO_ANSWER),
        ([ExitCode.NO_ANSWER, ExitCode.REGRESSED], ExitCode.REGRESSED),
    ],
)
def test_a_regression_wins_over_what_has_no_answer(codes, expected):
    assert reports.worst_code(codes) == expected


def test_a_comparison_of_a_slowdown_on_purpose_is_refused():
    how = an_interleaved(planted=a_plant("mlp"))

    with pytest.raises(InvalidFileError, match=r"x: .* made mlp worse on purpose"):
        reports.make_report(a_comparison(a_change("mlp"), interleaved=how), "x")
