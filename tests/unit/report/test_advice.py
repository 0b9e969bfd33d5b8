import pytest

from ci_perf.model.comparison import Stale, Verdict
from ci_perf.model.process import Exhausted
from ci_perf.model.validity import Status, Validity
from ci_perf.report import advice, remarks
from tests.comparisons import (
    a_change,
    a_comparison,
    a_head,
    a_numerics,
    a_remedy,
    a_side,
    an_uncompared,
)
from tests.runs import a_reason
from tests.unit.report.parts import an_undecided


def said(phrases):
    return ["".join(phrase) for phrase in phrases]


def steps(*rows):
    return said(advice.list_steps(a_comparison(*rows)))


def test_the_next_command_names_the_run_and_the_baselines_that_were_judged():
    """Another file called run.json may hold another run's numbers."""
    comparison = a_comparison(
        a_change("bert", Verdict.REGRESSED, ratio=1.2),
        head=a_head(label="my runs/b 1.json"),
        base=a_side(label="perf/nvidia-h200/standard"),
    )

    (step,) = said(advice.list_steps(comparison))

    assert "ci-perf accept 'my runs/b 1.json' --workload bert --baselines perf --reason" in step


def test_between_two_runs_there_is_no_folder_of_baselines_to_name():
    comparison = a_comparison(
        a_change("bert", Verdict.IMPROVED, ratio=0.8), base=a_side(label="a/b/base.json")
    )

    (step,) = said(advice.list_steps(comparison))

    assert "--baselines" not in step


def test_accept_may_refuse_the_numbers_of_a_busy_machine():
    row = a_change("bert", Verdict.IMPROVED, ratio=0.8)
    busy = Validity(
        status=Status.DEGRADED, reasons=(a_reason("host_pressure", "bert", Status.DEGRADED),)
    )

    (step,) = said(advice.list_steps(a_comparison(row, validity=busy)))

    assert step.endswith(
        "--workload bert (it refuses numbers of a very busy machine: check again then)"
    )


def test_other_numerics_join_a_history_also_beside_a_workload_that_begins_one():
    (step,) = steps(
        a_numerics("bert"), a_numerics("mlp"), a_change("mlp", Verdict.IMPROVED, ratio=0.8)
    )

    assert "--workload bert --workload mlp --append --reason" in step


def test_numerics_without_a_gate_join_the_history_of_a_speed_that_has_not_changed():
    (step,) = steps(a_numerics("bert"), a_change("bert"))

    assert step.endswith('ci-perf accept run.json --workload bert --append --reason "…"')


def test_losses_that_differ_in_a_late_digit_are_shown_with_that_digit():
    (step,) = steps(a_numerics("bert", base=(2.0,), head=(2.00000001,), code="numerics_vary"))

    assert "bert (loss of step 1: 2 → 2.00000001, " in step


@pytest.mark.parametrize(("exit_code", "is_harmless"), [(0, True), (1, False)])
def test_only_a_suspicion_that_fails_nothing_is_called_harmless(exit_code, is_harmless):
    row = a_change("bert", Verdict.LIKELY_SLOWER, ratio=1.018)
    (step,) = said(advice.list_steps(a_comparison(row, exit_code=exit_code)))

    assert ("This is not proven, and does not " in step) is is_harmless


def test_a_new_workload_says_why_its_base_could_not_be_launched():
    (step,) = steps(an_uncompared("vit", Verdict.NEW, "no file vit.py"), a_change("bert"))

    assert "No baseline yet: vit (the base could not be launched: no file vit.py)." in step
    assert remarks.describe(an_uncompared("vit", Verdict.NEW, "no file vit.py")) == (
        "no baseline yet, and the base could not be launched"
    )


@pytest.mark.parametrize("verdict", [Verdict.NEW, Verdict.INCONCLUSIVE])
@pytest.mark.parametrize(
    "blame",
    [a_change("bert", Verdict.REGRESSED, ratio=1.2), a_numerics("bert", gate=True)],
    ids=["regressed", "other numbers"],
)
def test_what_pairs_blame_is_not_accepted_for_want_of_a_baseline(verdict, blame):
    rows = [an_uncompared(name, verdict, gate=False) for name in ("bert", "vit")]

    (first, second) = steps(*rows, blame)

    assert '--workload bert --reason "…"' in first
    assert "vit" in second
    assert "bert" not in second


def test_where_pairs_blame_all_that_is_new_only_the_blame_is_left():
    (step,) = steps(
        an_uncompared("bert", Verdict.NEW), a_change("bert", Verdict.REGRESSED, ratio=1.2)
    )

    assert step.startswith("Regressed: bert")


def test_a_baseline_that_has_moved_away_is_to_be_measured_anew():
    comparison = a_comparison(
        a_change(), stale=Stale(suspects=3, cleared=2, ratio=1.04), base=a_side(label="perf/x/s")
    )
    (step,) = said(advice.list_steps(comparison))

    assert "ci-perf run --suite standard and then ci-perf accept run.json --baselines perf" in step
    assert step.endswith('--replace --reason "…"')


def of_samples(*rows):
    """Say what to do about samples: they have no run."""
    return said(advice.list_steps(a_comparison(*rows, suite="samples", head=a_head(run=""))))


NO_PAIRS = "Not decided without pairs: search. Launch base and head in turns in one job, and give "


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (a_change("search", Verdict.REGRESSED, ratio=1.2), "Regressed: search"),
        (a_change("search", Verdict.INCONCLUSIVE, ratio=1.2), NO_PAIRS),
        (a_change("search", Verdict.LIKELY_SLOWER, ratio=1.2), NO_PAIRS),
        (
            an_undecided("search", pairs=6, remedy=a_remedy(18)),
            "Not decided by so few pairs: search (12 more).",
        ),
        (
            an_undecided("search", pairs=2, code="too_few_pairs"),
            "Not decided by so few pairs: search (4 more).",
        ),
        (
            an_undecided("search", pairs=6, code="rounded"),
            "Inconclusive, because the numbers are rounded too coarsely: search.",
        ),
    ],
)
def test_what_samples_lack_is_said_without_a_command_of_ours(row, said):
    (step,) = of_samples(row)

    assert step.startswith(said)
    assert "ci-perf" not in step


def test_samples_of_noise_name_the_limit_that_their_pairs_can_hold():
    (step,) = of_samples(an_undecided("search", pairs=18, remedy=a_remedy(limit=0.1163)))

    assert step.endswith("a fixed number of threads or longer steps, or judge by --limit 0.12.")


def test_a_metric_of_samples_without_a_partner_is_to_be_sampled():
    gone = an_uncompared("a", Verdict.FAILED, metric="count", code="missing")
    new = an_uncompared("b", Verdict.NEW, metric="count")

    assert of_samples(gone, new) == [
        "Missing on the head: a count. Sample it again, or remove it from the history.",
        "Only on the head: b count. Sample the base, too.",
    ]


def test_samples_that_improved_or_stayed_ask_nothing():
    assert of_samples(a_change("a", Verdict.IMPROVED), a_change("b")) == []
    assert of_samples() == ["There is nothing to judge: the samples contain no workload."]


def test_a_suite_may_be_called_samples():
    comparison = a_comparison(a_change("a", Verdict.REGRESSED, ratio=1.2), suite="samples")

    assert "ci-perf accept" in said(advice.list_steps(comparison))[0]


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
