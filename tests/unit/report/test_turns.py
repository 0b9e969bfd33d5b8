"""What is said of launches in turns."""

from ci_perf.model.comparison import Verdict
from ci_perf.report import turns
from tests.comparisons import a_change, a_comparison, an_interleaved


def summary(*rows, **found):
    comparison = a_comparison(*rows, interleaved=an_interleaved(**found))
    return "".join(turns.summary(comparison))


def test_all_pairs_are_counted_and_not_only_those_that_decided():
    row = a_change("bert", Verdict.REGRESSED, ratio=1.2, pairs=4)

    assert "launched in turns: 6 pairs in 4 min 10 s of 20 min, 3 suspects; stopped when" in (
        summary(row, pairs=6)
    )


def test_a_base_that_was_not_needed_is_said_not_to_have_been_launched():
    said = summary(a_change("bert"), suspects=0, pairs=0, spent_s=0.0)

    assert said.endswith("): the history left no suspect, so the base was not launched.")


def test_what_was_interrupted_before_its_suspects_were_counted_claims_nothing_of_them():
    said = summary(a_change("bert"), suspects=0, pairs=0, spent_s=0.0, stopped="interrupted")

    assert "suspect" not in said
    assert said.endswith("0 pairs in 0 s of 20 min; interrupted.")
