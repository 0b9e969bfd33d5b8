"""How many checks came before, as a job is told that may only read."""

import pytest

from ci_perf.cli.main import cli
from tests.integration.github.second_stage import slower
from tests.integration.github.stage import PULL, worse
from tests.integration.github.test_comment import overwrite


def before(stage, *words):
    """Call `ci-perf github count-checks` in this process; return what it prints."""
    assert cli(["github", "count-checks", *words], prog_name="ci-perf", standalone_mode=False) == 0
    return stage.capfd.readouterr().out.strip()


def test_a_pull_request_that_was_just_opened_had_none(stage):
    stage.github.add_pull(PULL)
    stage.on_pull("opened")

    assert before(stage) == "0"
    assert "checks-before<<" in stage.outputs


@pytest.mark.parametrize("how", [{"action": "synchronize"}, {"action": "opened", "attempt": 2}])
def test_without_a_comment_nothing_tells_how_many_there_were(stage, how):
    stage.github.add_pull(PULL)
    stage.on_pull(**how)

    assert before(stage) == "unknown"


def test_the_comment_counts_them_by_machine_and_the_most_count(second):
    second.measured(slower()).report()
    second.stage.on_pull(sha="a" * 40)

    assert before(second.stage) == "1"
    assert before(second.stage, "--key", "other") == "unknown"


def test_a_comment_of_checks_that_tested_nothing_counts_none(stage):
    stage.github.add_pull(PULL)
    stage.on_pull()
    stage.publish(of=(worse(),))

    assert before(stage, "--key", "standard") == "0"


def test_a_damaged_comment_and_an_event_of_no_pull_request_are_no_number(second):
    second.measured(slower()).report()
    overwrite(second.github, second.body.replace(" record=", " record=x"))
    second.stage.on_pull(sha="a" * 40)
    assert before(second.stage) == "unknown"

    second.stage.happens("schedule")
    assert before(second.stage) == "unknown"
    cli(["github", "count-checks"], prog_name="ci-perf", standalone_mode=False)
    assert "earlier checks are not known: " in second.stage.capfd.readouterr().err
