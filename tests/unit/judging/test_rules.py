"""One owner: a verdict, a gate and an exit code change in `judging/rules.py` and nowhere else."""

import ast
from pathlib import Path

import pytest

from ci_perf.model.comparison import Code

PACKAGE = Path(__file__).parents[3] / "ci_perf"
OWNER = PACKAGE / "judging" / "rules.py"
DECIDING = {"verdict", "gate", "code", "exit_code"}
# A limit of suite.toml has a gate, and a process an exit code: neither is an answer.
OTHERS = {
    "suite.py",
    "model/suite.py",
    "features/bisect/bisecting.py",
    "features/containers/launch/running.py",
}


def find_changes(source):
    """Return the lines in which a copy gets another verdict, code, gate or exit code."""
    return [
        node.lineno
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func).rpartition(".")[2] in {"replace", "__replace__"}
        and (DECIDING & {each.arg for each in node.keywords} or _is_spread(node))
    ]


def _is_spread(call):
    """Whether a copy gets fields by a dictionary that names one of these."""
    spread = [each.value for each in call.keywords if each.arg is None]
    names = {
        node.value for each in spread for node in ast.walk(each) if isinstance(node, ast.Constant)
    }
    return bool(DECIDING & names)


def test_only_the_rules_change_a_verdict_a_gate_or_an_exit_code():
    others = {
        str(path.relative_to(PACKAGE)): lines
        for path in PACKAGE.rglob("*.py")
        if path != OWNER and (lines := find_changes(path.read_text("utf-8")))
    }

    assert others.keys() <= OTHERS, others


@pytest.mark.parametrize(
    "source",
    [
        "msgspec.structs.replace(row, verdict=Verdict.UNCHANGED)",
        "replace(row, code=Code.ACCEPTED)",
        "structs.replace(comparison, exit_code=0)",
        "structs.replace(row, **{'gate': False})",
    ],
)
def test_a_change_elsewhere_would_be_found(source):
    assert find_changes(source)


def test_each_reason_code_is_given_by_the_judge():
    given = {
        node.attr
        for path in OWNER.parent.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "Code"
    }

    assert given == set(Code.__members__)
