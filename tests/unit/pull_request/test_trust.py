"""How much of a stranger's run counts, without any network."""

import msgspec
import pytest

from ci_perf.errors import ExitCode, RefusedError
from ci_perf.judging import rules
from ci_perf.model.comparison import Verdict
from ci_perf.pull_request import trust
from ci_perf.report.sentences import say
from tests.comparisons import a_change, a_comparison, an_uncompared
from tests.runs import HEAD_COMMIT, STEADY, a_measured, a_run

OTHER = "f" * 40
OF_OTHER = say("other_commit", measured=OTHER, head=HEAD_COMMIT)


def a_run_of(commit, *, dirty=False):
    run = a_run(a_measured("mlp", *STEADY))
    return msgspec.structs.replace(
        run, source=msgspec.structs.replace(run.source, commit=commit, dirty=dirty)
    )


@pytest.mark.parametrize(
    ("commit", "dirty", "notes"),
    [
        (HEAD_COMMIT, False, ()),
        (OTHER, False, (OF_OTHER,)),
        (HEAD_COMMIT, True, (say("changed_files"),)),
        (
            OTHER,
            True,
            (
                OF_OTHER,
                say("changed_files"),
            ),
        ),
    ],
)
def test_numbers_of_any_other_code_are_named(commit, dirty, notes):
    assert tuple(trust.note_source(a_run_of(commit, dirty=dirty), HEAD_COMMIT)) == notes


def test_numbers_of_any_other_code_are_no_baseline():
    trust.check_source(a_run_of(HEAD_COMMIT), HEAD_COMMIT, "run 100")

    with pytest.raises(RefusedError, match=f"^run 100: .*{HEAD_COMMIT[:12]}, found .*ffffffffffff"):
        trust.check_source(a_run_of(OTHER), HEAD_COMMIT, "run 100")
    with pytest.raises(RefusedError, match=r"^run 100: .*changed files; measure the commit itself"):
        trust.check_source(a_run_of(HEAD_COMMIT, dirty=True), HEAD_COMMIT, "run 100")


def unproven(*rows, refused=True):
    return trust.count_unproven(a_comparison(*rows), are_pairs_refused=refused)


@pytest.mark.parametrize(
    ("verdict", "refused", "counts"),
    [
        (Verdict.LIKELY_SLOWER, False, True),
        (Verdict.LIKELY_SLOWER, True, True),
        (Verdict.INCONCLUSIVE, False, False),
        (Verdict.INCONCLUSIVE, True, True),
        (Verdict.UNCHANGED, True, False),
        (Verdict.IMPROVED, True, False),
    ],
)
def test_what_looks_worse_without_pairs_is_unproven(verdict, refused, counts):
    row = a_change(verdict=verdict, ratio=1.1)

    assert bool(unproven(row, refused=refused)) is counts


@pytest.mark.parametrize("ratio", [0.9, 1.0])
def test_what_does_not_look_worse_needs_no_proof(ratio):
    assert unproven(a_change(verdict=Verdict.LIKELY_SLOWER, ratio=ratio)) == 0


def test_what_gates_nothing_or_has_no_ratio_needs_no_proof():
    assert unproven(a_change(verdict=Verdict.LIKELY_SLOWER, ratio=1.1, gate=False)) == 0
    assert unproven(a_change(verdict=Verdict.LIKELY_SLOWER, base=0.0, head=1.0)) == 0
    assert unproven(an_uncompared(verdict=Verdict.INCONCLUSIVE)) == 0


def test_a_workload_is_counted_once_whatever_of_it_looks_worse():
    rows = [a_change(name, Verdict.LIKELY_SLOWER, ratio=1.1) for name in ("a", "a", "b")]

    assert unproven(*rows) == 2


def test_workloads_that_no_baseline_can_judge_are_counted():
    rows = [an_uncompared(name, Verdict.INCONCLUSIVE) for name in ("a", "a", "b")]

    assert trust.count_incomparable(a_comparison(*rows, a_change("c"))) == 2
    assert trust.count_incomparable(a_comparison(a_change("c"), an_uncompared("d"))) == 0


@pytest.mark.parametrize("code", ExitCode)
def test_a_doubt_takes_a_success_away_and_no_other_answer(code):
    comparison = a_comparison(a_change(), exit_code=int(code))
    doubted = rules.deny_success(comparison)

    assert doubted.exit_code == (ExitCode.NO_ANSWER if code is ExitCode.OK else code)
    assert msgspec.structs.replace(doubted, exit_code=int(code)) == comparison
