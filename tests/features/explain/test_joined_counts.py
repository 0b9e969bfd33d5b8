"""What several counted steps have in common."""

from collections import Counter

import pytest

from ci_perf.features.explain.worker.functions import Name, Node
from ci_perf.features.explain.worker.operators import Operation
from ci_perf.features.explain.worker.origins import AuthorCode
from ci_perf.features.explain.worker.passes import join_counts
from ci_perf.model.explanation import MOST_OPERATORS, NAME_CHARS, AuthorFunction, Varying
from ci_perf.system.linux import short

FORWARD = AuthorFunction(file="model.py", function="Net.forward", line=7)


def an_operation(operator="aten::mm", arguments="float32[8,16]", caller=FORWARD):
    signature = f"{abs(hash(arguments)):016x}"[:16]
    return Operation(operator, signature, arguments, is_backward=False, caller=caller, line=9)


def a_step(**calls):
    """Count by the arguments of one operator."""
    return Counter({an_operation(arguments=text): times for text, times in calls.items()})


def joined(operators, functions=()):
    """Join steps; `functions` has the calls of `Net.forward` and of what it calls, per step."""
    graphs: list[dict[Name, Node]] = []
    for calls, callees in functions or [(1, {})] * 2:
        called = {name: (times, 0.0) for name, times in callees.items()}
        graphs.append({FORWARD: Node(calls=calls, callees=called)})
    return join_counts(operators, graphs)


def test_what_all_steps_do_is_counted_per_step_the_most_called_first():
    counts = joined([a_step(a=1, b=3), a_step(b=3, a=1)])

    assert [(use.arguments, use.calls) for use in counts.operators] == [("b", 3.0), ("a", 1.0)]
    assert counts.operators[0].caller == FORWARD
    assert (counts.steps, counts.varies, counts.cut, counts.absent) == (2, (), 0, "")


def test_an_operator_that_varies_in_one_way_is_not_counted_in_any():
    counts = joined([a_step(a=1, b=2), a_step(a=1, c=2)])

    assert counts.operators == ()
    assert counts.varies == (Varying(operator="aten::mm", caller=FORWARD),)


def test_functions_and_calls_of_libraries_that_vary_are_named():
    empty = [Counter()] * 2
    counts = joined(empty, [(2, {"len": 3, "torch.ones": 1}), (2, {"len": 3, "abs": 1})])
    (function,) = counts.functions

    assert (function.calls, [(each.name, each.calls) for each in function.callees]) == (
        2,
        [("len", 3)],
    )
    assert counts.varies == (Varying(operator="abs", caller=FORWARD),)
    counts = joined(empty, [(1, {}), (2, {})])
    assert (counts.functions, counts.varies) == ((), (Varying(caller=FORWARD),))


def test_a_step_that_varies_everywhere_is_cut():
    steps = [
        Counter(an_operation(f"custom::op{line:03}", number, None) for line in range(300))
        for number in "12"
    ]

    counts = joined(steps)

    assert counts.varies[:2] == (
        Varying(operator="custom::op000"),
        Varying(operator="custom::op001"),
    )
    assert (len(counts.varies), counts.cut) == (100, 200)


def test_of_too_many_operators_the_most_called_are_kept_and_the_rest_is_counted():
    names = [f"s{number}" for number in range(MOST_OPERATORS + 40)]
    step = a_step(**dict.fromkeys(names, 1), often=5)
    backwards = a_step(often=5, **dict.fromkeys(reversed(names), 1))

    counts = joined([step, step])

    assert len(counts.operators) == MOST_OPERATORS
    assert counts.operators[0].arguments == "often"
    assert counts.cut == 41
    assert joined([backwards, backwards]) == counts


@pytest.mark.parametrize("name", ["x" * 10_000, "\ud800", "a\x1b[31m\n::error::"])
def test_hostile_names_become_text_that_a_file_can_hold(name):
    assert len(short(name)) <= NAME_CHARS
    assert short(name).encode()


def test_code_that_is_not_below_the_root_is_not_the_authors(tmp_path):
    code = AuthorCode(str(tmp_path))

    def compiled(file):
        return compile("0", file, "exec")

    assert code.function(compiled("<string>")) is None
    assert code.function(compiled("/usr/lib/python3/x.py")) is None
    assert code.function(compiled(f"{tmp_path}/venv/lib/site-packages/x.py")) is None
    assert code.function(compiled(f"{tmp_path}/src/{'d' * 5000}.py")) is None
    own = code.function(compiled(f"{tmp_path}/src/a\udcffb.py"))
    assert own == AuthorFunction(file="src/a?b.py", function="<module>", line=1)
