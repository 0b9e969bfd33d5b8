"""A pull request from opening to a green re-run: real measurements, and a GitHub that remembers."""

import datetime as dt

import pytest

from ci_perf.model.comparison import Comparison
from ci_perf.model.run import Run
from ci_perf.system import files
from tests import headlines
from tests.integration.actions.stage import PULL, RESULTS
from tests.projects import SLOW


@pytest.mark.story
def test_a_slower_pull_request_is_told_accepted_and_then_green(stage):
    stage.git.commit(product_py=SLOW)
    event = stage.pull_request()

    gpu, measured = stage.measured(event)

    folder = stage.results
    written = [(folder / name).read_text() for name in RESULTS]
    seen = [str(step.environment) + step.log for step in measured.steps] + gpu.summaries + written
    assert not [text for text in seen if stage.github.token in text or "***" in text]
    assert stage.github.requests == []

    hosted, reported = stage.reported(event, options="--check")

    assert files.read(folder / "run.json", Run).measured
    assert files.read(folder / "comparison.json", Comparison).exit_code == 1
    headline = (folder / "report.md").read_text().splitlines()[0]
    assert headline.startswith(f"### {headlines.FAIL}")
    assert headline in gpu.summaries[0]
    assert (measured.outputs["exit-code"], measured.outputs["verdict"]) == ("1", "regressed")
    assert measured.step("measure").code == reported.step("report").code == 1
    (comment,) = stage.github.comments(PULL)
    assert headline in comment.body
    assert headline in hosted.summaries[0]
    assert reported.outputs["comment-url"].endswith(str(comment.id))
    assert [
        one.conclusion for one in stage.github.checks(event["pull_request"]["head"]["sha"])
    ] == ["failure"]

    stage.git.ask("apply", str(folder / "baseline.patch"))
    stage.git.commit()
    event = stage.pull_request("synchronize")
    _, measured = stage.measured(event)  # its own baseline clears it: no base is launched
    _, reported = stage.reported(event)

    assert measured.conclusion == reported.conclusion == "success", measured.step("measure").log
    (comment,) = stage.github.comments(PULL)
    assert len(comment.bodies) == 2
    assert "❌ 1 regressed" in comment.bodies[0]
    assert "❌ 1 regressed" not in comment.body
    assert stage.git.worktrees() == [str(stage.git.root)]


def test_a_paused_gate_measures_tells_its_answer_and_passes(stage):
    stage.git.commit(product_py=SLOW)
    event = stage.pull_request()
    end = str(dt.datetime.now(dt.UTC).date() + dt.timedelta(days=7))

    gpu, measured = stage.measured(event, paused_until=end)
    _, reported = stage.reported(event, options="--check")

    assert measured.conclusion == reported.conclusion == "success"
    assert (measured.outputs["exit-code"], measured.outputs["verdict"]) == ("1", "regressed")
    told = f"Paused until {end} (green job), else ❌ Fail: slower"
    (comment,) = stage.github.comments(PULL)
    (check,) = stage.github.checks(event["pull_request"]["head"]["sha"])
    assert check.conclusion == "neutral"
    assert all(told in text for text in (gpu.summaries[0], comment.body, check.output["title"]))


def test_a_pause_offers_no_baseline_of_what_has_no_answer_and_ends_by_itself(stage):
    stage.git.commit(product_py="raise RuntimeError('no such device')\n")
    event = stage.pull_request()
    today = dt.datetime.now(dt.UTC).date()

    for days, code in ((7, 0), (0, 3), (40, 2)):
        end = str(today + dt.timedelta(days=days))
        _, measured = stage.measured(event, against="none", paused_until=end)
        assert measured.step("measure").code == code, end
        assert not (stage.results / "baseline.patch").exists()


def test_a_workload_that_crashes_is_told_and_blames_nobody(stage):
    stage.git.commit(product_py="raise RuntimeError('no such device')\n")
    event = stage.pull_request()

    gpu, measured = stage.measured(event, against="none")
    _, reported = stage.reported(event)

    assert measured.step("measure").code == reported.step("report").code == 3
    assert measured.outputs["exit-code"] == "3"
    assert "no such device" in gpu.summaries[0]
    assert "no such device" in stage.github.comments(PULL)[0].body


def test_a_suite_that_is_wrong_leaves_nothing_to_report_and_says_so(stage):
    (stage.git.root / "workloads/suite.toml").write_text("[suites\n")
    event = stage.pull_request()

    gpu, measured = stage.measured(event, against="none")
    _, reported = stage.reported(event)

    assert (measured.step("measure").code, measured.outputs["exit-code"]) == (2, "")
    assert "came to no verdict" in gpu.summaries[0]
    assert "suite.toml" in measured.step("measure").log
    assert reported.step("report").code == 2
    assert "comparison.json" in reported.step("report").log
    assert stage.github.comments(PULL) == []
