"""What our comment remembers of earlier checks, and that no fork can say otherwise."""

import msgspec
import pytest

from ci_perf.errors import ExitCode
from ci_perf.github.report_comment import Comment
from ci_perf.model.run import Checks, Earlier
from ci_perf.pull_request import check_record
from tests.comparisons import an_interleaved
from tests.histories import beside, scaled
from tests.integration.github.second_stage import (
    HEAD,
    RUN,
    artifact_of,
    of_head,
    paired,
    slower,
    steady,
)
from tests.integration.github.stage import PULL, worse
from tests.integration.github.test_comment import overwrite
from tests.runs import SLOW, STEADY, a_measured

STANDS = "An earlier run of these very commits proved a regression of"


def record_of(body):
    records = check_record.decode(Comment(id=1, url="", body=body).record)
    assert records is not None
    (record,) = records.values()
    return record


def again(second, run, number=RUN + 1):
    """Let the same commit be measured and reported once more."""
    second.github.add_run(number, head_sha=HEAD, fork=True)
    second.github.add_artifact(number, "ci-perf", artifact_of(run))
    return second.report(run=number)


def unlike(run, name):
    return msgspec.structs.replace(run, id=name)


def test_each_check_that_tests_pairs_is_counted_in_the_comment_and_nobody_sees_it(second):
    second.measured(slower(), fork=True).report()
    first = record_of(second.body)
    again(second, unlike(slower(), "another"))

    assert (first.tested, first.runs[0].said["mlp"]["step_time_s"]) == (1, "regressed")
    assert record_of(second.body).tested == 2
    assert "This is check 2" in second.body.partition("record")[2].partition("-->")[2]


def test_reporting_a_run_twice_counts_it_once(second):
    second.measured(slower(), fork=True).report()
    second.report()

    assert record_of(second.body).tested == 1


def test_a_check_without_suspects_spends_nothing(second):
    second.measured(steady(), fork=True).report()

    assert Comment(id=1, url="", body=second.body).record == ""


def test_a_fork_cannot_say_how_much_was_spent(second):
    claimed = msgspec.structs.replace(slower(), checks=Checks(before=1000))
    second.measured(claimed, fork=True).report()

    assert "This is check" not in second.body
    assert record_of(second.body).runs[0].check == 1


def test_running_again_without_pairs_does_not_make_a_regression_green(second):
    second.measured(slower(), fork=True).report()
    ended = again(second, of_head(a_measured("mlp", *STEADY), id="again", **paired(1.0)))

    assert ended.code == ExitCode.REGRESSED
    assert f"{STANDS} `mlp`" in second.body
    # And once more: what was held is remembered.
    assert (
        again(second, of_head(a_measured("mlp", *STEADY), id="third", **paired(1.0)), 44).code == 1
    )


def test_a_run_that_names_no_base_takes_no_regression_back(second):
    second.measured(slower(), fork=True).report()
    ended = again(second, of_head(a_measured("mlp", *STEADY), id="again"))

    assert ended.code == ExitCode.REGRESSED
    assert f"{STANDS} `mlp`" in second.body


def earlier_of(run, **more):
    known = Earlier(
        run=run.id,
        started_at=run.started_at,
        check=1,
        suspects=1,
        said={"mlp": {"step_time_s": "unchanged"}},
        paired=run.paired,
    )
    return msgspec.structs.replace(known, **more)


def test_pairs_of_an_earlier_run_count_where_the_comment_vouches_for_them(second):
    second.measured(slower(), fork=True).report()
    # The fork claims that these pairs had cleared it.
    run = of_head(a_measured("mlp", *STEADY), id="again", **paired(1.0))
    ended = again(second, msgspec.structs.replace(run, earlier=(earlier_of(slower()),)))

    assert ended.code == ExitCode.REGRESSED
    assert "Pairs of earlier runs of the same commits count, too: `slower`" in second.body
    assert STANDS not in second.body


def test_pairs_of_an_earlier_run_that_are_not_those_it_had_are_left_out(second):
    second.measured(slower(), fork=True).report()
    run = of_head(a_measured("mlp", *STEADY), id="again", **paired(1.0))
    invented = earlier_of(slower(), paired=paired(0.9)["paired"])
    ended = again(second, msgspec.structs.replace(run, earlier=(invented,)))

    assert ended.code == ExitCode.REGRESSED
    assert STANDS in second.body


def two(mlp, vit, **more):
    """A run of two workloads whose heads take so many times as long as their bases."""
    sides = [beside(ratio, workload=name)["paired"] for name, ratio in (("mlp", mlp), ("vit", vit))]
    measured = (a_measured("mlp", *scaled(STEADY, mlp)), a_measured("vit", *STEADY))
    return of_head(*measured, **paired(mlp) | {"paired": (*sides[0], *sides[1])}, **more)


@pytest.mark.parametrize("kept", ["mlp", "vit"])
def test_pairs_of_one_workload_count_and_a_fork_cannot_leave_those_of_another_out(second, kept):
    first = two(2.0, 1.0, id="first")
    second.measured(first, fork=True).report()
    some = tuple(each for each in first.paired if each.workload == kept)
    run = msgspec.structs.replace(
        two(1.0, 1.0, id="again"), earlier=(earlier_of(first, paired=some),)
    )
    ended = again(second, run)

    assert "Pairs of earlier runs of the same commits count, too: `first`" in second.body
    assert ended.code == ExitCode.REGRESSED
    assert (STANDS in second.body) is (kept == "vit")


def test_another_commit_is_judged_by_itself(second):
    second.measured(slower(), fork=True).report()
    second.github.state.pulls[PULL].head_sha = "e" * 40
    run = of_head(a_measured("mlp", *STEADY), commit="e" * 40, id="again", **paired(1.0))
    second.github.add_run(50, head_sha="e" * 40, fork=True)
    second.github.add_artifact(50, "ci-perf", artifact_of(run))
    ended = second.report(run=50)

    assert ended.code == ExitCode.OK
    assert STANDS not in second.body


def test_a_damaged_record_is_no_history_and_the_report_says_so(second):
    second.measured(slower(), fork=True).report()
    overwrite(second.github, second.body.replace(" record=", " record=x"))
    again(second, of_head(a_measured("mlp", *SLOW), id="again", **paired(2.0)))

    assert "tested pairs before is not known" in second.body


def test_a_job_that_publishes_its_own_pull_request_counts_too(stage):
    stage.github.add_pull(PULL)
    for run in ("one", "two"):
        comparison = worse()
        head = msgspec.structs.replace(comparison.head, run=run)
        comparison = msgspec.structs.replace(comparison, head=head, interleaved=an_interleaved())
        stage.on_pull(run=100 + len(run))
        stage.publish(of=(comparison,))

    assert record_of(stage.bodies()[0]).tested == 2


@pytest.mark.parametrize("text", ["x", "AAAA", "é", "-" * 100])
def test_whatever_stands_there_is_a_record_or_none(text):
    assert check_record.decode(text) is None
