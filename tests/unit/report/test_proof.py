"""A proof as tables: what did not hold first, every bound beside its figure, nothing obeyed."""

import ast
import re
from fnmatch import fnmatch
from pathlib import Path

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
    text = shown(broken, EVENTS, a_step("b", "not_tried"), device="cuda:0", environment=ON_A_GPU)

    assert text.startswith(
        "**`NVIDIA H200`: 1 of 3 steps held, 1 did not hold, 1 could not be tried**\n"
    )
    parts = ["What did not hold, and what to do next", "What was tried", "What could not be tried"]
    assert sorted(parts, key=text.index) == parts
    beyond = "step timed by ci-perf ÷ step of a bare loop: 1.2 (0.99 to 1.01)"
    assert f"| `harness` | {beyond} | Look for other programs" in text
    assert "| driver | `570.1` |" in text
    assert "proof of a CPU" not in text


def test_each_figure_has_its_bound_beside_it():
    text = "time by CUDA events ÷ time by the host's clock: 0.9987 (0.97 to 1.01)"
    assert text in shown(EVENTS, device="cuda:0")


def test_a_figure_without_a_bound_stands_behind_those_with_one():
    length = Figure(name="step", value=1.5e-3, unit=Unit.SECOND)
    step = msgspec.structs.replace(EVENTS, figures=(length, *EVENTS.figures), detail="so it was")

    assert "0.9987 (0.97 to 1.01); time of a step: 1.50 ms; `so it was`" in shown(
        step, device="cuda:0"
    )


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
    assert "says nothing about a GPU" in shown(a_step())


def test_what_was_not_tested_in_a_step_that_held_stands_beside_its_figures():
    step = a_step("throughput", "held", Figure(name="autocast_is_bf16", value=1.0))

    assert (
        "does autocast compute in bf16? yes (expected yes); not tested: rate in `fp32` ÷ its peak"
        in shown(step)
    )
    assert "not tested" not in shown(a_step())


def test_a_part_of_a_name_is_shown_and_never_obeyed():
    step = a_step(
        "launch_noise",
        "held",
        Figure(name="median_detectable", value=0.01, unit=Unit.SHARE),
        Figure(name="spread__a_", value=0.02, unit=Unit.SHARE),
    )

    assert "launches of `_a_` differ by: 2.00 %" in shown(step)


# --- the words of every figure


def literal(name):
    """Spell a name as the code has it, with a `*` for each part that is computed."""
    match name:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(map(literal, parts))
        case _:
            return "*"


def figures_of_code(files):
    """Name every figure that the code makes: "spread_*" where a part of it is computed."""
    for node in (node for file in files for node in ast.walk(ast.parse(file.read_text()))):
        match node:
            case ast.Call(func=ast.Name(id="_agrees"), args=[name, *_]):
                yield f"{literal(name)}_agrees"
            case ast.Call(func=ast.Name(id="key"), args=[name, *_]):
                yield f"{literal(name)}_*"
            case ast.Call(func=ast.Name(id="share" | "ratio" | "count"), args=[name, *_]):
                yield literal(name)
            case ast.Call(
                func=ast.Name(id="Figure"), keywords=[ast.keyword(arg="name", value=name), *_]
            ):
                yield literal(name)
            case _:
                pass


def test_every_figure_that_code_makes_has_words():
    package = Path(judge.__file__).parents[1]
    probes = (package / "measuring" / "probes").glob("*.py")
    made = set(figures_of_code([*probes, package / "judging" / "proof_figures.py"]))
    of_parts = {"first", "steady", "loss_*"}  # read by the step that starts the part
    computed = {"*", "*_agrees"}  # of a loop over names, which the steps themselves show below
    known = {pattern for words in proof_words.WORDS.values() for pattern in words.figures}

    assert len(made) > 80
    for name in made - of_parts - computed:
        assert any(fnmatch(name, pattern) or fnmatch(pattern, name) for pattern in known), name


def test_words_say_what_a_number_without_a_unit_is():
    ratios = {bound.figure for step in judge.STEPS for bound in step.bounds}
    for step, words in proof_words.WORDS.items():
        for pattern, text in words.figures.items():
            assert text[-1] not in ".:"
            if pattern in ratios and ("_over_" in pattern or pattern.endswith("_of_peak")):
                assert "÷" in text, (step, pattern)


def test_every_bounded_figure_has_words():
    for step in judge.STEPS:
        for bound in (*step.bounds, *([step.noise] if step.noise else ())):
            assert proof_words.of_figure(step.name, bound.figure), (step.name, bound.figure)


def test_a_step_of_another_version_is_shown_with_all_its_figures():
    step = a_step("new", "did_not_hold", Figure(name="a", value=2.0))

    assert "| `new` | `a`: 2 |" in shown(step)
    assert "does not know the step" in shown(step)


def test_nothing_in_a_proof_is_obeyed():
    trap = HOSTILE + " </td><script>x</script> \x1b[31m ::error::b"
    step = ProofStep(step="events", outcome="held", detail=trap, figures=EVENTS.figures)
    machine = msgspec.structs.replace(GPU, gpu_model=trap)
    environment = an_environment(hard=machine, driver=trap, torch=trap)
    proof = a_proof(
        step, a_step("x", "not_tried", detail=trap), environment=environment, device="cuda:0"
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
    before = gpu_proof(EVENTS, a_step("harness"), driver="570.1")
    slower = a_step("events", "did_not_hold", Figure(name="device_over_wall", value=1.0986))
    after = gpu_proof(a_step("harness"), slower, driver="580.2")
    text = compared(before, after)

    assert text.startswith("**Of 2 steps, 1 held in A and does not hold in B: `events`**")
    assert "Changed: driver `570.1` → `580.2`\n" in text
    ratio = "time by CUDA events ÷ time by the host's clock"
    assert f"| `events` | held → did not hold | {ratio}: 1.099 (0.97 to 1.01) |" in text
    assert f"| `events` | {ratio} | 0.9987 | 1.099 | 1.1 |" in text


def gpu_proof(*steps, **soft):
    return a_proof(*steps, device="cuda:0", environment=an_environment(hard=GPU, **soft))


def test_what_could_not_be_tried_again_is_lost_for_any_reason_but_time():
    before = gpu_proof(EVENTS, a_step("harness"), a_step("numerics"))
    after = gpu_proof(
        a_step("events", "not_tried", why="missing", detail="there is no driver"),
        a_step("harness", "not_tried", why="time"),
        a_step("issue"),
    )
    text = compared(before, after)

    assert text.startswith(
        "**Of 4 steps, 2 held in A and do not hold in B: `events`, `numerics`; "
        "no time in B (--minutes) for 1: `harness`; 1 other outcome changed**"
    )
    assert "| held → could not be tried | `there is no driver` | Remove the reason" in text
    assert "| `numerics` | held → not part of it |  | Prove B again with all steps. |" in text
    assert "not part of it → held" in text


def test_a_lack_of_time_alone_loses_nothing_and_is_said():
    untimed = gpu_proof(a_step("events", "not_tried", why="time"))

    assert compared(gpu_proof(EVENTS), untimed).startswith(
        "**Of 1 step, none that held in A is lost in B; no time in B (--minutes) for 1: `events`**"
    )


def test_a_cpu_beside_a_gpu_is_named_as_the_cause():
    on_cpu = a_proof(a_step("events", "not_tried", why="device", detail="it needs a GPU"))
    text = compared(gpu_proof(EVENTS), on_cpu)

    assert "1 held in A and does not hold in B: `events`" in text
    assert "A is a proof of a GPU, B one of a CPU" in text
    assert "Changed: device `cuda:0` → `cpu`, machine" in text


def test_two_gpus_of_one_machine_differ_by_their_device():
    other = a_proof(EVENTS, device="cuda:1")

    assert "Changed: device `cuda:0` → `cuda:1`\n" in compared(gpu_proof(EVENTS), other)


def test_figures_of_different_units_and_of_zero_have_no_ratio():
    first, second = (
        gpu_proof(a_step("events", "held", Figure(name="a", value=0.0), Figure(name="b", value=b)))
        for b in (1e-300, 1e300)
    )
    text = compared(first, second)

    assert "| `a` | 0 | 0 | – |" in text  # noqa: RUF001
    assert "| `b` | 1e−300 | 1.00e+300 | – |" in text  # noqa: RUF001
