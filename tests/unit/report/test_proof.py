"""A proof as tables: what did not hold first, every bound beside its figure, nothing obeyed."""

import re

import msgspec
import pytest

from ci_perf.judging import proof as judge
from ci_perf.model.metrics import Unit
from ci_perf.model.proof import Figure, ProofStep
from ci_perf.report import proof as report
from ci_perf.report import proof_comparison, proof_words, tables
from ci_perf.report.page import tables_page
from tests.proofs import a_proof, a_step
from tests.runs import GPU, an_environment
from tests.unit.report import rendered
from tests.unit.report.shapes import HOSTILE

EVENTS = a_step("events", "held", Figure(name="device_over_wall", value=0.9987))
ON_A_GPU = an_environment(hard=GPU, driver="570.1", cuda="12.8")


def shown(*steps, **more):
    return tables.markdown(report.page(a_proof(*steps, **more)))


def test_every_step_has_words_and_nothing_else_has():
    assert set(proof_words.WORDS) == {step.name for step in judge.STEPS}
    for words in proof_words.WORDS.values():
        assert words.claim.endswith(".")
        assert words.advice.endswith(".")


def test_the_headline_counts_and_what_did_not_hold_stands_first():
    broken = a_step("harness", "did_not_hold", Figure(name="timed_over_bare", value=1.2))
    text = shown(broken, EVENTS, a_step("b", "not_tried"), environment=ON_A_GPU)

    assert text.startswith(
        "**`NVIDIA H200`: 1 of 3 steps held, 1 did not hold, 1 could not be tried**\n"
    )
    parts = ["What did not hold, and what to do next", "What was tried", "What could not be tried"]
    assert sorted(parts, key=text.index) == parts
    assert "| `harness` | `timed ÷ bare` 1.2 (0.99 to 1.01) | Look for other programs" in text
    assert "| driver | `570.1` |" in text
    assert "proof of a CPU" not in text


def test_each_figure_has_its_bound_beside_it():
    assert "`device ÷ wall` 0.9987 (0.97 to 1.01)" in shown(EVENTS)


def test_a_figure_without_a_bound_stands_behind_those_with_one():
    length = Figure(name="step", value=1.5e-3, unit=Unit.SECOND)
    step = msgspec.structs.replace(EVENTS, figures=(length, *EVENTS.figures), detail="so it was")

    assert "0.9987 (0.97 to 1.01); `step` 1.50 ms; `so it was`" in shown(step)


@pytest.mark.parametrize(
    ("number", "unit", "text"),
    [
        (1.0034, None, "1.003"),
        (-0.5, None, "−0.5"),  # noqa: RUF001
        (12345.6, None, "12,346"),
        (-1.5e-3, Unit.SECOND, "−1.50 ms"),  # noqa: RUF001
        (1e300, Unit.COUNT, "1.00e+300"),
        (1e300, None, "1.00e+300"),
    ],
)
def test_a_number_is_short_whatever_it_is(number, unit, text):
    assert report.amount(number, unit) == text


def test_a_proof_of_a_cpu_says_so():
    assert "says nothing about a GPU" in shown(EVENTS)


def test_a_step_of_another_version_is_shown_with_all_its_figures():
    step = a_step("new", "did_not_hold", Figure(name="a", value=2.0))

    assert "| `new` | `a` 2 |" in shown(step)
    assert "does not know the step" in shown(step)


def test_nothing_in_a_proof_is_obeyed():
    trap = HOSTILE + " </td><script>x</script> \x1b[31m ::error::b"
    step = ProofStep(step="events", outcome="held", detail=trap, figures=EVENTS.figures)
    machine = msgspec.structs.replace(GPU, gpu_model=trap)
    environment = an_environment(hard=machine, driver=trap, torch=trap)
    proof = a_proof(
        step, a_step("x", "not_tried", detail=trap), environment=environment, device=trap
    )
    for page in (report.page(proof), proof_comparison.page(proof, proof)):
        markdown = tables.markdown(page)
        terminal = tables.terminal(page, width=120, color=False)
        html = tables_page.render(page, tone="same")

        shown_by_github = rendered.Page(markdown)

        assert not {"script", "img", "a"} & set(shown_by_github.tags)
        assert "octocat" not in shown_by_github.prose
        assert set(shown_by_github.rows) <= {2, 3, 4, 5}
        assert "\x1b" not in markdown + terminal + html
        assert "::error::" not in markdown + terminal
        assert not re.search("<(script|img|a)\\b", html)


# --- two of them


def compared(first, second):
    return tables.markdown(proof_comparison.page(first, second))


def test_what_is_lost_stands_first_with_what_may_have_caused_it():
    before = a_proof(
        EVENTS, a_step("harness"), environment=an_environment(hard=GPU, driver="570.1")
    )
    slower = a_step("events", "did_not_hold", Figure(name="device_over_wall", value=1.0986))
    after = a_proof(a_step("harness"), slower, environment=an_environment(hard=GPU, driver="580.2"))
    text = compared(before, after)

    assert text.startswith("**Of 2 steps, 1 held in A and does not hold in B: `events`**")
    assert "Changed: driver `570.1` → `580.2`\n" in text
    assert "| `events` | held → did not hold | `device ÷ wall` 1.099 (0.97 to 1.01) |" in text
    assert "| `events` | `device ÷ wall` | 0.9987 | 1.099 | 1.1 |" in text


def test_what_is_only_tried_in_one_of_them_is_a_change_and_no_loss():
    text = compared(a_proof(EVENTS), a_proof(a_step("events", "not_tried"), a_step("harness")))

    assert text.startswith("**Of 2 steps, none that held in A does not hold in B; 2 other outcomes")
    assert "held → could not be tried" in text
    assert "not part of it → held" in text


def test_figures_of_different_units_and_of_zero_have_no_ratio():
    first, second = (
        a_proof(a_step("events", "held", Figure(name="a", value=0.0), Figure(name="b", value=b)))
        for b in (1e-300, 1e300)
    )
    text = compared(first, second)

    assert "| `a` | 0 | 0 | – |" in text  # noqa: RUF001
    assert "| `b` | 1e−300 | 1.00e+300 | – |" in text  # noqa: RUF001
