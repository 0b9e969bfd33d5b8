"""The planted causes: every text is a program, and answers are counted by hand-made pairs."""

import ast
from typing import get_args

import pytest

from benchmarks.causes import __main__ as command
from benchmarks.causes import planted, scoring
from benchmarks.causes.causes import CAUSES
from ci_perf.model.explanation import CauseKind, ProfiledPair
from tests.step_profiles import a_step, a_use

MODELS = {path.name.partition(".")[0]: path.read_text() for path in command.MODELS.iterdir()}
EXTRA = planted.plant(
    "transformer",
    ("        return x + y\n", "        return x + y.sin()\n"),
    at="Block.forward",
    kinds="new more",
)
REST = [a_use(f"aten::rest{i}", 5, call_s=1e-3) for i in range(10)]


def pairs(*added):
    base, head = a_step(*REST, step_s=0.1), a_step(*REST, *added, step_s=0.11)
    return [ProfiledPair(base=base, head=head)] * 3


@pytest.mark.parametrize("name", CAUSES)
def test_every_cause_is_a_program_beside_two_decoys(name):
    base, decoys, head = planted.sources(MODELS, CAUSES[name])

    ast.parse(base)
    ast.parse(decoys)
    assert {"tidy", "note"} <= {
        node.name for node in ast.walk(ast.parse(head)) if isinstance(node, ast.FunctionDef)
    }


def test_the_causes_are_spread_over_models():
    causes = CAUSES.values()

    assert len({cause.model for cause in causes}) >= 18
    assert all(cause.functions and cause.kinds <= {*get_args(CauseKind)} for cause in causes)


def test_some_causes_are_launched_by_their_names():
    assert [*command.choose(None)] == [*CAUSES]
    assert [*command.choose(["gates", "no such"])] == ["experts with gates", "channels with gates"]


def test_a_change_that_finds_nothing_is_an_error():
    with pytest.raises(ValueError, match="0 times"):
        planted.sources({**MODELS, "transformer": "pass"}, EXTRA)


def test_an_answer_is_right_by_function_and_kind():
    (right,) = scoring.answers(
        EXTRA, pairs(a_use("aten::sin", 4, "Block.forward")), 3, is_gain=False
    )
    (wrong,) = scoring.answers(EXTRA, pairs(a_use("aten::sin", 4, "tidy")), 3, is_gain=False)

    assert (right.is_first, right.is_kind) == (True, True)
    assert (wrong.is_first, wrong.is_kind) == (False, False)


def test_the_same_launches_have_no_line():
    assert set(scoring.same([pair.base for pair in pairs() * 4], 3)) == {(0, 0)}
