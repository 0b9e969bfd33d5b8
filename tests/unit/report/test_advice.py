"""What to do next: the topic of each row, and the commands and limits that its sentence names."""

import tomllib

import pytest

from ci_perf.model import metrics
from ci_perf.model.base import COMMAND_SUITE
from ci_perf.model.comparison import Interval, Signs, Verdict
from ci_perf.model.process import Exhausted
from ci_perf.model.run import SETUP_OF_BASE, OtherEnvironment, Source
from ci_perf.model.validity import Doubt, Status, validity_of
from ci_perf.report import advice, first_numbers, headline, markdown, phrases, remarks, table_rows
from ci_perf.report.escape import Command
from ci_perf.report.sheet import Label, Topic, make_sheet
from tests import headlines
from tests.comparisons import (
    a_change,
    a_comparison,
    a_head,
    a_numerics,
    a_remedy,
    a_side,
    an_interleaved,
    an_uncompared,
)
from tests.runs import a_reason, an_image
from tests.unit.report import shapes
from tests.unit.report.parts import a_cleared, an_undecided

OUT_OF_BUDGET = {"interleaved": an_interleaved(stopped="budget")}
IN_PAIRS = {"interleaved": an_interleaved()}
REGRESSED = a_change("bert", Verdict.REGRESSED, ratio=1.2)
IMPROVED = a_change("bert", Verdict.IMPROVED, ratio=0.8)
IMAGE = an_image()
ENVIRONMENT = OtherEnvironment(python="/my venvs/old/bin/python")
PERF = a_side(label="perf/nvidia-h200/standard")


def list_steps(*rows, **more):
    return advice.list_steps(make_sheet(a_comparison(*rows, **more))).values()


def steps(*rows, **more):
    return ["".join(phrase) for phrase in list_steps(*rows, **more)]


def find_topic(comparison):
    """Return what is to be done about the worst row."""
    return make_sheet(comparison).findings[0].topic


def busy(code="host_pressure", workload="loader"):
    return validity_of((a_reason(code, workload=workload, status=Status.DEGRADED),))


@pytest.mark.parametrize(
    ("row", "more", "topic"),
    [
        (an_undecided(), OUT_OF_BUDGET, Topic.PAIRS),
        (an_undecided(code="too_few_sessions"), OUT_OF_BUDGET, Topic.PAIRS),
        (an_undecided(code="machine_moved"), OUT_OF_BUDGET, Topic.PAIRS),
        (an_undecided(code="machine_moved"), IN_PAIRS, Topic.PAIRS),
        (an_undecided(code="too_few_sessions"), {}, Topic.PAIRS),
        (an_undecided(), {}, Topic.PAIRS),
        (an_undecided(pairs=2, remedy=a_remedy(13)), IN_PAIRS, Topic.PAIRS),
        (an_undecided(pairs=18, remedy=a_remedy()), IN_PAIRS, Topic.NOISE),
        (an_undecided(code="two_modes", pairs=18, remedy=a_remedy()), IN_PAIRS, Topic.PAIRS),
        (an_undecided(code="other_packages"), IN_PAIRS, Topic.OTHER_PACKAGES),
        (an_undecided(code="base_failed", pairs=2, remedy=a_remedy(9)), {}, Topic.BASE_FAILED),
        (an_undecided(), {"validity": busy(workload="other")}, Topic.PAIRS),
    ],
)
def test_a_row_without_an_answer_gets_what_decides_it_soonest(row, more, topic):
    assert find_topic(a_comparison(row, **more)) is topic


@pytest.mark.parametrize(
    "row",
    [
        an_undecided(pairs=18, remedy=a_remedy(limit=0.1)),
        an_undecided(code="two_modes", pairs=18, remedy=a_remedy()),
        an_undecided(code="too_few_pairs", pairs=1),
        an_undecided(code="machine_moved"),
    ],
    ids=lambda row: row.code,
)
@pytest.mark.parametrize("code", [doubt.code for doubt in Doubt if doubt.is_busy])
def test_on_a_busy_machine_the_advice_is_about_the_machine_alone(row, code):
    comparison = a_comparison(row, validity=busy(code), **OUT_OF_BUDGET)

    assert find_topic(comparison) is Topic.BUSY_MACHINE


@pytest.mark.parametrize("validity", [validity_of(()), busy(workload="a")], ids=["calm", "busy"])
def test_what_the_budget_left_needs_more_of_it(validity):
    left = an_uncompared("a", Verdict.INCONCLUSIVE, code="too_few_pairs")
    comparison = a_comparison(left, a_change("b"), validity=validity, **OUT_OF_BUDGET)

    assert comparison.exit_code == 3
    assert find_topic(comparison) is Topic.PAIRS
    said = "".join(headline.summarise(make_sheet(comparison)))
    assert said == f"{headlines.NO_ANSWER}{Label.NOT_COMPARED.value}: a"


@pytest.mark.parametrize(
    ("rows", "more", "command"),
    [
        (
            [REGRESSED],
            {"head": a_head(label="my runs/b 1.json"), "base": PERF},
            "ci-perf accept 'my runs/b 1.json' --workload bert --baselines perf --reason",
        ),
        ([IMPROVED], {"base": a_side(label="a/b/base.json")}, "accept run.json --workload bert$"),
        (
            [a_numerics("bert"), a_numerics("mlp"), a_change("mlp", Verdict.IMPROVED, ratio=0.8)],
            {},
            '--workload bert --workload mlp --append --reason "…"',
        ),
        ([a_numerics("bert"), a_change("bert")], {}, '--workload bert --append --reason "…"'),
        (
            [a_cleared("a", 1.04), a_cleared("b", 1.03)],
            {"base": PERF},
            'run.json --baselines perf --replace --reason "…"',
        ),
        (
            [an_undecided()],
            OUT_OF_BUDGET,
            "check loader --suite standard --against main --budget 40m",
        ),
        ([an_undecided()], {"base": PERF}, "--against main --baselines perf"),
        (
            [an_undecided()],
            {"interleaved": an_interleaved(ref="x; rm -rf ~", stopped="decided")},
            "--against 'x; rm -rf ~' --budget 40m",
        ),
        (
            [an_undecided()],
            {"interleaved": an_interleaved(environment=ENVIRONMENT)},
            "--against main --base-python '/my venvs/old/bin/python' --budget 40m",
        ),
        (
            [an_undecided()],
            {
                "head": a_head(image=IMAGE),
                "interleaved": an_interleaved(
                    environment=OtherEnvironment(python="python3", image="old@sha256:1")
                ),
            },
            f"--base-image old@sha256:1 --container image={IMAGE.reference} --budget 40m",
        ),
    ],
)
def test_a_command_names_the_run_the_base_and_the_baselines_that_were_judged(rows, more, command):
    """Another file called run.json may hold another run's numbers; `$` is the end."""
    (step,) = steps(*rows, **more)

    assert command in f"{step}$"


@pytest.mark.parametrize(("commit", "ref"), [("ab" * 20, "ab" * 20), ("unknown", "COMMIT")])
def test_two_runs_without_baselines_are_judged_against_the_commit_of_the_first(commit, ref):
    base = a_side(label="before.json", source=Source(commit=commit, branch="main", dirty=False))
    (step,) = steps(an_undecided(), base=base)

    assert step.endswith(f"--suite standard --against {ref}")


@pytest.mark.parametrize("limit", [0.0123, 0.1163, 0.2])
def test_the_limit_to_write_down_is_large_enough_and_toml(limit):
    noisy = (an_undecided(name, pairs=18, remedy=a_remedy(limit=limit)) for name in ("a", "b"))
    (step,) = list_steps(*noisy, **IN_PAIRS)

    commands = [part for part in step if isinstance(part, Command)]
    written = tomllib.loads(commands[-1])["step_time_s"]["limit"]
    assert limit <= written <= 1.1 * limit


@pytest.mark.parametrize("limit", [0.0, 0.21, 25.0])
def test_a_limit_that_would_promise_nothing_is_not_advised(limit):
    (step,) = steps(an_undecided(pairs=18, remedy=a_remedy(limit=limit)), **IN_PAIRS)

    assert step.endswith("Use a quieter machine.")


@pytest.mark.parametrize("verdict", [Verdict.NEW, Verdict.INCONCLUSIVE])
@pytest.mark.parametrize("blame", [REGRESSED, a_numerics("bert", gate=True)])
def test_what_pairs_blame_is_not_accepted_for_want_of_a_baseline(verdict, blame):
    rows = [an_uncompared(name, verdict, gate=False) for name in ("bert", "vit")]

    (first, second) = steps(*rows, blame)
    assert '--workload bert --reason "…"' in first
    assert "vit" in second
    assert "bert" not in second


def test_a_base_that_stopped_running_is_no_question_of_its_setup():
    row = an_undecided(code="base_failed", note="Segfault", pairs=2, remedy=a_remedy(9))
    (step,) = steps(row, **IN_PAIRS)

    assert "loader (Segfault)" in step
    assert "setup" not in step


@pytest.mark.parametrize(
    ("kind", "cures"),
    [
        ("host", ["smaller batch", "gradient accumulation", "loader workers", "more memory"]),
        ("limit", ["memory_limit_bytes", "smaller batch"]),
    ],
)
def test_every_cure_of_too_little_memory_is_named(kind, cures):
    (step,) = steps(an_uncompared("gpt", exhausted=Exhausted(kind=kind)))

    assert [cure for cure in cures if cure not in step] == []


# --- remarks on rows


@pytest.mark.parametrize(
    ("interval", "said"),
    [
        (Interval(low=0.97, high=1.0823), "no slowdown above 8.3 %"),
        (Interval(low=0.97, high=11.0), "no slowdown above 1,000 %"),
        (Interval(low=0.9, high=0.995), "no slowdown"),
        (Interval(low=0.0, high=1e40), ""),
        (None, ""),
    ],
)
@pytest.mark.parametrize("code", ["spread", "too_few_pairs", "base_failed", "other_packages"])
def test_a_row_without_an_answer_says_first_which_slowdown_it_excludes(interval, said, code):
    first, *_ = remarks.describe(an_undecided(code=code, interval=interval)).split("; ")

    assert first == said if said else "no slowdown" not in first


@pytest.mark.parametrize(
    ("metric", "ratio", "is_said"),
    [
        (metrics.STEP_TIME, 1.006, True),
        (metrics.HOST_RSS_PEAK, 1.006, False),
    ],
)
def test_an_unchanged_time_says_that_its_workload_computes_more(metric, ratio, is_said):
    signs = Signs(direction="worse", moved=("operators", "flops"))
    row = a_change(metric=metric, ratio=ratio, signs=signs)

    said = "also worse: operators per step, FLOPs per step" in remarks.describe(row)
    assert said is is_said


def test_an_unchanged_command_says_how_small_a_slowdown_it_would_have_seen():
    row = a_change(ratio=1.02, item_unit="run", interval=Interval(low=1.01, high=1.034))

    said = remarks.describe(row)

    assert (
        said == "no slowdown above 3.4 % of the whole command; a step of it may be slower by more"
    )


# --- samples of another tool


def advise_samples(*rows):
    return steps(*rows, suite="samples", head=a_head(run=""))


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (a_change("search", Verdict.REGRESSED, ratio=1.2), "Regressed: search"),
        (a_change("search", Verdict.INCONCLUSIVE, ratio=1.2), "Not decided: search. Give more"),
        (a_change("search", Verdict.LIKELY_SLOWER, ratio=1.2), "Not decided: search. Give more"),
        (an_undecided("search", pairs=6, code="rounded"), "Inconclusive, because the numbers are"),
        (an_uncompared("search", metric="count", code="missing"), "Missing, though the base has"),
        (an_uncompared("search", Verdict.NEW, metric="count"), "Only on the head: search count."),
        (an_undecided("search", pairs=18, remedy=a_remedy(limit=0.1163)), "Not decided, and more"),
    ],
)
def test_what_samples_lack_is_said_without_a_command_of_ours(row, said):
    (step,) = advise_samples(row)

    assert step.startswith(said)
    assert "ci-perf" not in step


def test_samples_that_improved_or_stayed_ask_nothing():
    assert advise_samples(a_change("a", Verdict.IMPROVED), a_change("b")) == []
    assert advise_samples() == ["Neither side has a workload."]


def test_a_suite_may_be_called_samples():
    (step,) = steps(a_change("a", Verdict.REGRESSED, ratio=1.2), suite="samples")

    assert "ci-perf accept" in step


@pytest.mark.parametrize("drifts", [(1.06,), (1.06, 0.94)], ids=["one", "opposite"])
def test_suspects_that_chance_may_have_moved_ask_for_no_new_baseline(drifts):
    rows = [a_cleared(f"w{number}", drift) for number, drift in enumerate(drifts)]

    assert not any("Refresh the baseline" in step for step in steps(*rows))


@pytest.mark.parametrize("row", [REGRESSED, IMPROVED, a_numerics("bert")])
def test_numbers_under_two_environments_are_no_baseline(row):
    upgrade = an_interleaved(environment=ENVIRONMENT)

    assert "ci-perf accept" in "".join(steps(row))
    assert "ci-perf accept" not in "".join(steps(row, interleaved=upgrade))


def test_samples_have_no_baseline_to_refresh():
    cleared = [a_cleared("a", 1.06), a_cleared("b", 1.05)]

    assert steps(*cleared, suite="samples", head=a_side(run="")) == []


@pytest.mark.parametrize("suite", ["smoke", "builtin:pytest"])
def test_a_new_workload_whose_base_fails_is_told_to_mend_the_base(suite):
    row = an_uncompared("tests-a", Verdict.NEW, code="new", note="ImportError: no kernels")
    (step,) = steps(row, suite=suite)

    assert step.startswith("Not decided, because the base could not be launched: tests-a")
    assert "If this pull request repairs it, there is nothing to compare" in step
    assert "setup = " in step


def test_a_program_that_no_record_proves_is_launched_with_all():
    row = an_uncompared("mlp", Verdict.INCONCLUSIVE, code="unproven_program")
    (step,) = steps(row)

    assert step.endswith("Launch both: add --all to the check.")


def test_the_first_of_several_reasons_names_its_workload():
    rows = [an_undecided(name, code="base_failed", note=f"boom {name}") for name in ("a", "b")]
    (step,) = steps(*rows)

    assert "a, b (a: boom a)" in step


@pytest.mark.parametrize("suite", ["smoke", COMMAND_SUITE])
def test_a_failed_setup_of_the_base_is_named_with_what_to_do(suite):
    note = f"{SETUP_OF_BASE} in /base: expected `make` to end with code 0 within 9 s, found code 2"
    row = an_uncompared("a", Verdict.INCONCLUSIVE, note, code="not_comparable")
    comparison = a_comparison(row, suite=suite)

    (said,) = advice.list_steps(make_sheet(comparison)).values()
    assert "The setup of the base failed" in phrases.plain(said)
    assert "expected `make`" in phrases.plain(said)
    assert "Repair it" in phrases.plain(said)
    first = headline.render(comparison)
    assert first == f"{headlines.NO_ANSWER}{Label.SETUP_FAILED.value}: a"


def test_what_was_measured_for_the_first_time_is_told_once_above_the_fold():
    above = markdown.render(shapes.all_new()).partition("All 2 rows")[0]

    assert above.count("12.3 ms") == 2
    assert above.count("`bert` |") == 1


def test_a_workload_without_flops_shows_none():
    numbers = {"step_time_s": 0.1, "flops": 0.0}
    table = first_numbers.from_comparison(
        a_comparison(an_uncompared("a", Verdict.NEW, head=numbers)), shown=5
    )

    assert table is not None
    assert "FLOPs of a step" not in table.heading


def test_growth_of_memory_is_never_called_slower():
    row = a_change(verdict=Verdict.LIKELY_SLOWER, metric=metrics.HOST_RSS_PEAK, code="spread")

    assert table_rows.tally(make_sheet(a_comparison(row)).findings).endswith("1 likely more memory")
    assert "slower" not in markdown.render(a_comparison(row)).partition("Change [interval]")[0]
