"""What a rehearsal says of a gate: of one that works, and of those that cannot fail."""

import math
import random

import msgspec
import pytest

from ci_perf.errors import ExitCode, UsageError
from ci_perf.features.rehearsal import findings, plants, rehearsal_report
from ci_perf.judging import compare, summarise
from ci_perf.judging.policy import default_limits
from ci_perf.model.rehearsed import PlantAnswer
from ci_perf.model.suite import Limits
from ci_perf.model.validity import validity_of
from ci_perf.report import tables
from tests.comparisons import a_plant
from tests.histories import a_head, a_pair, in_turns, no_history, pairs
from tests.rehearsals import a_rehearsal, a_rehearsed, an_attempt
from tests.runs import CPU, STEADY, a_measured, a_reason, a_run
from tests.unit.judging.test_pairs_of_commands import IN_TURNS

LIMIT = 0.05


def limits(**step_time):
    known = default_limits(CPU)
    limit = msgspec.structs.replace(known["step_time_s"], **step_time)
    return Limits(default={**known, "step_time_s": limit})


def judged(run, known=None, fail_on="proven"):
    return compare.compare(
        no_history(run), summarise.run(run, label=""), limits=known or limits(), fail_on=fail_on
    )


def judged_alike(run, known=None):
    known = known or limits()
    return findings.judge_alike(run, judged(run, known), "w", known, "proven")


def judged_plant(run, share=3 * LIMIT, known=None, fail_on="proven", **more):
    """What is said of a plant, and why its gate cannot fail."""
    comparison = judged(run, known, fail_on)
    plant = a_plant("w", share=share, **more)
    attempt = findings.judge_plant(plant, run, comparison, fail_on)
    return attempt, [*findings.find_broken(attempt, LIMIT, run, comparison)]


def recorded_pairs(seed, ratio):
    """Eighteen pairs that differ as recorded ones did; the head takes `ratio` times as long."""
    drawn = random.Random(seed).sample(IN_TURNS, len(IN_TURNS))
    return in_turns(a_head(), [a_pair(1e-3, 1e-3 * ratio * math.exp(each)) for each in drawn])


def test_recorded_pairs_clear_the_same_program_and_find_one_and_a_half_limits_20_of_20_each():
    alike = [judged_alike(recorded_pairs(seed, 1.0)) for seed in range(20)]
    found = [judged_plant(recorded_pairs(seed, 1.075), share=0.075)[0] for seed in range(20)]

    assert [each.alike for each in alike] == ["clear"] * 20
    assert [each.answer for each in found] == [PlantAnswer.FOUND] * 20
    assert not any(each.broken for each in alike)


def test_a_red_without_a_plant_names_what_is_red():
    told = judged_alike(in_turns(a_head(), pairs(1.2)))

    assert (told.alike, told.why) == ("red", "step_time_s +20.0 %")


NOISE = (0.5, 2.0, 1.0, 3.0, 0.4, 1.5) * 3
IDLE = a_run(a_measured("w", *STEADY, operators=0))
NOISY = in_turns(a_head(), [a_pair(1e-3, 1e-3 * each) for each in NOISE])


@pytest.mark.parametrize(
    ("run", "options", "said"),
    [
        (pairs(1.15), {"known": limits(gate=False)}, "passes: step_time_s: gate = false"),
        (pairs(1.15), {"fail_on": "never"}, "passes: fail_on = never"),
        (pairs(1.0), {}, "changes nothing (step_time_s"),
        (NOISY.paired[0].pairs, {}, "nothing can be decided on this machine"),
    ],
    ids=["no gate", "never red", "a step that ignores its work", "noise"],
)
def test_a_plant_of_three_limits_that_passes_is_told(run, options, said):
    attempt, broken = judged_plant(in_turns(a_head(), run), **options)

    assert attempt.answer is not PlantAnswer.FOUND
    assert [said in each for each in broken] == [True]


def test_a_red_of_memory_is_no_answer_to_planted_work():
    run = in_turns(a_head(), pairs(1.0, rss=600 * 2**20))

    assert judged(run).exit_code == ExitCode.REGRESSED
    assert judged_plant(run)[0].answer is PlantAnswer.UNCHANGED
    of_memory, _ = judged_plant(run, kind="memory", held_bytes=2**20, share=0.0, iterations=0)
    assert of_memory.answer is PlantAnswer.FOUND


@pytest.mark.parametrize(
    ("run", "known", "said"),
    [
        (in_turns(a_head(), pairs(1.0)), limits(relative=0.4), "a limit of 40 % lets 15 % pass"),
        (in_turns(a_head((1e-3,) * 4), pairs(1.0, spread=0.0)), None, "never varies: 40 launches"),
        (in_turns(a_head((5e-8, 5.1e-8)), pairs(1.0, base_s=5e-8)), None, "no time is in the step"),
        (in_turns(IDLE, pairs(1.0)), None, "no operator of torch is in the step"),
        (NOISY, None, "nothing can be decided on this machine"),
        (
            in_turns(a_head(validity=validity_of((a_reason("clocks_held_down"),))), pairs(1.0)),
            None,
            "nothing can be decided on this machine: nothing left",
        ),
    ],
    ids=["limit", "constant", "empty", "no operators", "noise", "invalid"],
)
def test_a_gate_that_cannot_fail_is_told_before_anything_is_planted(run, known, said):
    told = judged_alike(run, known)

    assert [said in each for each in told.broken] == [True], told


def test_a_budget_that_ends_early_breaks_no_gate():
    run = in_turns(a_head(), NOISY.paired[0].pairs[:2], stopped="budget")

    attempt, broken = judged_plant(run)

    assert (attempt.answer, attempt.why, broken) == (PlantAnswer.OPEN, "the budget ended", [])
    assert judged_alike(run).broken == ()


def test_a_plant_that_moves_an_ungated_count_is_seen_and_passes():
    more = {"operators": 11, "base": {"operators": 10}}
    run = in_turns(a_run(a_measured("w", *STEADY, operators=11)), pairs(1.0, **more))

    attempt, broken = judged_plant(run, kind="operator", share=0.0)

    assert (attempt.answer, attempt.why) == (PlantAnswer.PASSED, "operators: gate = false")
    assert broken == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("0%", "more than 0 % and at most 1000 %, found 0%"),
        ("1001%", "more than 0 % and at most 1000 %"),
        ("memory=0MiB", "a size from 1B on"),
        ("memory=64", "expected a share of a step"),
        ("sleep", "wait, operator or memory=64MiB, found 'sleep'"),
        ("-5%", "found '-5%'"),
    ],
)
def test_a_plant_that_is_none_is_refused(text, said):
    with pytest.raises(UsageError, match=said.replace("(", r"\(")):
        plants.read_plant(text)


def a_suite(*attempts, **more):
    known = msgspec.structs.replace(a_rehearsed(**more), attempts=attempts)
    return a_rehearsal(train_step=known)


FOUND, LATE = an_attempt(), findings.leave_out(a_plant("w"))


@pytest.mark.parametrize(
    ("suite", "code"),
    [
        (a_suite(FOUND), ExitCode.OK),
        (a_suite(FOUND, LATE), ExitCode.NO_ANSWER),
        (a_suite(), ExitCode.NO_ANSWER),
        (a_suite(FOUND, alike="open"), ExitCode.NO_ANSWER),
        (a_suite(FOUND, alike="red"), ExitCode.REGRESSED),
        (a_suite(FOUND, broken=("why",)), ExitCode.REGRESSED),
    ],
)
def test_only_a_gate_that_finds_everything_and_nothing_else_ends_with_0(suite, code):
    assert findings.choose_exit_code(suite) is code


def test_the_page_says_in_a_line_what_was_found_and_how_long_it_took():
    suite = a_suite(FOUND, an_attempt(PlantAnswer.FOUND, share=0.15, pairs=3, duration_s=20.0))

    page = tables.markdown(rehearsal_report.page(suite, is_interrupted=False))

    said = "7.5 % found in 6 pairs (41 s), 15 % found in 3 pairs (20 s); A=A clear"
    assert said in page.replace("\N{NO-BREAK SPACE}", " ")


def test_a_red_without_a_plant_says_what_to_do_about_the_machine():
    page = tables.markdown(rehearsal_report.page(a_suite(alike="red"), is_interrupted=False))

    assert "ci-perf doctor --deep" in page


def test_the_picture_has_a_mark_for_each_plant_of_work_on_one_scale():
    missed = an_attempt(PlantAnswer.UNCHANGED, share=0.15, ratio=0.99)

    drawn = rehearsal_report.draw(a_suite(FOUND, missed, LATE))

    assert (drawn.count('href="#head"'), drawn.count('href="#base"')) == (1, 1)
    assert 'href="#base" x="94.0%" y="200.0"' in drawn
