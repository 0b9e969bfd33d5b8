"""When a step of a proof holds: every bounded figure within its bounds."""

import math

import msgspec
import pytest

from ci_perf.judging import proof
from ci_perf.judging.proof import Bound, Step
from ci_perf.model.metrics import Unit
from ci_perf.model.proof import Figure, Probed
from tests.proofs import a_proof, a_step

STEP = Step(
    name="anything",
    seconds=1,
    bounds=(Bound(figure="ratio", least=0.99, most=1.01), Bound(figure="count", most=2)),
)


def probed(ratio, count=2.0):
    return Probed(
        figures=(
            Figure(name="ratio", value=ratio),
            Figure(name="count", value=count, unit=Unit.COUNT),
        )
    )


@pytest.mark.parametrize(
    ("ratio", "count", "outcome"),
    [
        (1.0, 2, "held"),
        (0.99, 0, "held"),
        (1.01, 2, "held"),
        (1.0101, 2, "did_not_hold"),
        (0.9899, 2, "did_not_hold"),
        (1.0, 3, "did_not_hold"),
    ],
)
def test_a_step_holds_where_every_bounded_figure_lies_within_its_bounds(ratio, count, outcome):
    step = proof.judged(STEP, probed(ratio, count), 1.5)

    assert (step.step, step.outcome, step.seconds) == ("anything", outcome, 1.5)
    assert step.figures == probed(ratio, count).figures


def test_a_step_that_lacks_a_bounded_figure_could_not_be_tried():
    step = proof.judged(STEP, Probed(figures=(Figure(name="ratio", value=1.0),)), 1.0)

    assert (step.outcome, step.detail) == ("not_tried", "there is no figure count")


def test_a_reason_not_to_try_is_no_verdict():
    step = proof.judged(STEP, Probed(not_tried="no GPU"), 1.0)

    assert (step.outcome, step.detail) == ("not_tried", "no GPU")


def test_a_step_that_broke_while_it_was_tried_does_not_hold():
    step = proof.judged(STEP, Probed(broken="killed by signal 11"), 1.0)

    assert (step.outcome, step.detail) == ("did_not_hold", "killed by signal 11")


@pytest.mark.parametrize(
    ("outcomes", "is_proven"),
    [
        (["held", "not_tried"], True),
        (["held", "did_not_hold"], False),
        (["not_tried"], False),
        ([], False),
    ],
)
def test_a_proof_in_which_nothing_held_proves_nothing(outcomes, is_proven):
    steps = [a_step(f"step{number}", outcome) for number, outcome in enumerate(outcomes)]

    assert proof.is_proven(a_proof(*steps)) is is_proven


def test_figures_that_chance_hides_are_kept_without_a_verdict():
    hidden = msgspec.structs.replace(probed(1.0), not_tried="too noisy")

    step = proof.judged(STEP, hidden, 1.0)

    assert (step.outcome, step.detail, step.figures) == ("not_tried", "too noisy", hidden.figures)


def test_every_step_has_a_name_of_its_own_and_a_bound_that_can_be_missed():
    assert len({step.name for step in proof.STEPS}) == len(proof.STEPS)
    for step in proof.STEPS:
        assert step.seconds > 0
        assert step.devices
        for bound in step.bounds:
            assert -math.inf < bound.least or bound.most < math.inf
            assert bound.least <= bound.most
