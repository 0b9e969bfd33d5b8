"""When a step of a proof holds: every bounded figure within its bounds."""

import dataclasses
import math

import msgspec
import pytest

from ci_perf.errors import InvalidFileError
from ci_perf.judging import proof
from ci_perf.judging.proof import Bound, Step
from ci_perf.judging.proof_comparison import is_kept
from ci_perf.model import codec
from ci_perf.model.metrics import Unit
from ci_perf.model.proof import MOST_FIGURES, MOST_STEPS, Figure, Probed, Proof, ProofStep
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

    assert (step.outcome, step.why) == ("not_tried", "missing")
    assert step.detail == "there is no figure count"


def test_a_reason_not_to_try_is_no_verdict():
    step = proof.judged(STEP, Probed(not_tried="no GPU", why="device"), 1.0)

    assert (step.outcome, step.why, step.detail) == ("not_tried", "device", "no GPU")


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
    noisy = dataclasses.replace(STEP, noise=Bound(figure="count", most=1.5))

    step = proof.judged(noisy, probed(1.0), 1.0)

    assert (step.outcome, step.why, step.figures) == ("not_tried", "noise", probed(1.0).figures)


def test_every_step_has_a_name_of_its_own_and_a_bound_that_can_be_missed():
    assert len({step.name for step in proof.STEPS}) == len(proof.STEPS)
    for step in proof.STEPS:
        assert step.seconds > 0
        assert step.devices
        for bound in step.bounds:
            assert -math.inf < bound.least or bound.most < math.inf
            assert bound.least <= bound.most


def test_what_a_machine_does_not_tell_is_untested():
    figures = (Figure(name="autocast_is_bf16", value=1.0), Figure(name="bf16_of_peak", value=0.7))
    step = proof.judged(proof.of_name("throughput"), Probed(figures=figures), 1.0)

    assert step.outcome == "held"
    assert proof.untested(step) == ["fp32_of_peak", "tf32_of_peak", "fp16_of_peak"]
    assert proof.untested(a_step("throughput", "not_tried")) == []


# --- a file


def events(ratio, outcome="held"):
    return a_step("events", outcome, Figure(name="device_over_wall", value=ratio))


def judged_again(*steps, device="cuda:0"):
    return proof.rejudged(a_proof(*steps, device=device)).steps


@pytest.mark.parametrize(
    ("written", "outcome", "why"),
    [
        (events(1.0), "held", None),
        (events(9.0), "did_not_hold", None),
        (events(1.0, "did_not_hold"), "held", None),
        (ProofStep(step="events", outcome="held"), "not_tried", "missing"),
        (ProofStep(step="events", outcome="did_not_hold", detail="killed"), "did_not_hold", None),
        (ProofStep(step="events", outcome="not_tried", why="time"), "not_tried", "time"),
        (
            msgspec.structs.replace(events(9.0), outcome="not_tried", why="time"),
            "did_not_hold",
            None,
        ),
        (a_step("of_a_later_version"), "not_tried", "unknown"),
        (a_step("clock_resolution"), "not_tried", "device"),
    ],
)
def test_an_outcome_in_a_file_counts_only_as_far_as_its_figures_say_so(written, outcome, why):
    (step,) = judged_again(written)

    assert (step.outcome, step.why) == (outcome, why)
    assert judged_again(step) == (step,)


def test_an_outcome_that_its_figures_contradict_is_told():
    (step,) = judged_again(msgspec.structs.replace(events(9.0), detail="so it was."))

    assert step.detail == "the file says: held; its figures do not. so it was."


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"minutes": -1.0}, "minutes"),
        ({"minutes": 1e9}, "minutes"),
        ({"device": "banana"}, "device"),
        ({"device": "cuda:0"}, "device: expected cpu, as the machine has it"),
        ({"steps": [{"step": "a", "outcome": "held"}] * 2}, "steps: expected each once, found a"),
        ({"steps": [{"step": f"s{n}", "outcome": "held"} for n in range(MOST_STEPS + 1)]}, "steps"),
        ({"steps": [{"step": "a", "outcome": "not_tried"}]}, "why: expected it just where"),
        ({"steps": [{"step": "a", "outcome": "held", "why": "time"}]}, "why: expected it just"),
        ({"steps": [{"step": "a", "outcome": "held", "detail": "x" * 5001}]}, "detail"),
        (
            {
                "steps": [
                    {"step": "a", "outcome": "held", "figures": [{"name": "b", "value": 1}] * 2}
                ]
            },
            "figures: expected each once, found b twice",
        ),
        (
            {
                "steps": [
                    {
                        "step": "a",
                        "outcome": "held",
                        "figures": [{"name": f"f{n}", "value": 1} for n in range(MOST_FIGURES + 1)],
                    }
                ]
            },
            "figures",
        ),
    ],
)
def test_a_file_without_bounds_or_of_contradictions_is_refused(change, said):
    document = msgspec.to_builtins(a_proof()) | change

    with pytest.raises(InvalidFileError) as refused:
        codec.decode(msgspec.json.encode(document), Proof, name="proof.json")

    assert said in str(refused.value)


# --- two of them


@pytest.mark.parametrize(
    ("second", "kept"),
    [
        ([events(1.0)], True),
        ([events(2.0, "did_not_hold")], False),
        ([], False),
        *(
            ([a_step("events", "not_tried", why=why)], False)
            for why in ("device", "missing", "noise", "busy", "interrupted", "failed")
        ),
    ],
)
def test_what_held_is_kept_only_where_it_holds_again(second, kept):
    assert is_kept(a_proof(events(1.0), device="cuda:0"), a_proof(*second, device="cuda:0")) is kept


def test_a_lack_of_time_loses_nothing_and_keeps_nothing():
    first = a_proof(events(1.0), a_step("harness"), device="cuda:0")
    untimed = a_step("events", "not_tried", why="time")

    assert is_kept(first, a_proof(untimed, a_step("harness"), device="cuda:0"))
    assert not is_kept(
        first, a_proof(untimed, a_step("harness", "not_tried", why="time"), device="cuda:0")
    )
