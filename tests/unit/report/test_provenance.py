"""What a report says of where its numbers come from."""

import msgspec
import pytest

from ci_perf.model.comparison import Spending, Verdict
from ci_perf.model.run import Source
from ci_perf.report import headline, provenance
from tests.comparisons import (
    a_change,
    a_comparison,
    a_head,
    a_side,
    an_interleaved,
    an_uncompared,
)
from tests.programs import a_same_program
from tests.runs import an_image


def summary(*rows, **found):
    comparison = a_comparison(*rows, interleaved=an_interleaved(**found))
    return "".join(next(provenance.list_notes(comparison)))


def test_a_base_that_was_not_needed_is_said_not_to_have_been_launched():
    said = summary(a_change("bert"), suspects=0, pairs=0, spent_s=0.0)

    assert said.endswith("): no metric needed pairs, so the base was not launched.")


def test_what_was_interrupted_before_its_suspects_were_counted_claims_nothing_of_them():
    said = summary(a_change("bert"), suspects=0, pairs=0, spent_s=0.0, stopped="interrupted")

    assert "suspect" not in said
    assert said.endswith("0 pairs in 0 s of 20 min; interrupted.")


BESIDE = an_interleaved(source=Source(commit="c" * 40, branch="", dirty=False), pairs=3)
SAME = an_uncompared("bert", Verdict.UNCHANGED, code="same_program", same=a_same_program("bert"))


@pytest.mark.parametrize(
    ("row", "interleaved", "base"),
    [
        (a_change(), None, "a1b2c3d"),
        (a_change(), BESIDE, "ccccccc"),
        (a_change(), msgspec.structs.replace(BESIDE, pairs=0), "a1b2c3d"),
        (SAME, msgspec.structs.replace(BESIDE, pairs=0), "ccccccc"),
    ],
    ids=["baseline", "launched", "not launched", "same program"],
)
def test_the_base_that_was_launched_is_named_before_that_of_the_baselines(row, interleaved, base):
    scope = "".join(headline.tell_scope(a_comparison(row, interleaved=interleaved)))

    assert scope.endswith(f"; {base} → d4e5f6a")


UNKNOWN = Source(commit="unknown", branch="unknown", dirty=False)
SAMPLES = a_comparison(
    a_change(),
    base=a_side(label="before", source=UNKNOWN, machine=None),
    head=a_head(label="after", source=UNKNOWN, machine=None, run=""),
)


def test_what_is_known_of_neither_side_has_no_row():
    names = ["".join(name) for name, _, _ in provenance.list_environment(SAMPLES)]

    assert names == ["Numbers from", "Sessions"]
    assert "".join(headline.tell_scope(SAMPLES)) == "ci_perf: standard: 1 workload, 1 metric"
    assert "".join(provenance.summarise_environment(SAMPLES)).startswith("Environment: base of 3 ")


@pytest.mark.parametrize(("sessions", "pairs"), [(0, 4), (3, 4), (0, 0)])
def test_without_a_session_the_base_that_was_launched_is_what_the_head_was_compared_with(
    sessions, pairs
):
    none = Source(commit="none", branch="none", dirty=False)
    found = a_comparison(
        a_change(),
        base=a_side(label="baselines", source=none, machine=None, sessions=sessions),
        head=a_head(image=an_image()),
        interleaved=an_interleaved(pairs=pairs),
    )

    facts = {"".join(name): "".join(base) for name, base, _ in provenance.list_environment(found)}
    is_launched = pairs > 0 and not sessions
    assert facts["Numbers from"] == ("main, launched" if is_launched else "baselines")
    assert (facts["Commit"] == "none") is not is_launched
    assert (facts["Machine"] == "unknown machine") is not is_launched
    assert ("Image" in facts) is not is_launched  # each side of a pair has its own


def before(**more):
    comparison = a_comparison(
        a_change(), interleaved=an_interleaved(notes=("a note",)), spending=Spending(**more)
    )
    _, *notes = provenance.list_notes(comparison)
    return ["".join(note) for note in notes]


def test_a_later_check_says_what_it_may_spend():
    (said, note) = before(check=3, share=0.0754)

    assert said.startswith("This is check 3 of a change that tests pairs: it may spend 7.5 % of")
    assert note == "a note"
    assert before(check=1, share=0.44) == ["a note"]


def test_a_check_of_a_pull_request_whose_history_nobody_knows_says_so():
    (said, _) = before(check=None, share=1.0)

    assert said.startswith("How many checks of this pull request tested pairs before is not known")


def test_earlier_runs_whose_pairs_count_are_named():
    (_, one, _) = before(check=2, share=0.1, earlier={"a": ("w",)})
    (_, many, _) = before(check=2, share=0.1, earlier=dict.fromkeys("abcd", ("w",)))

    assert one == "Pairs of earlier runs of the same commits count, too: a."
    assert many.endswith("count, too: a, b, c and 1 more.")
