"""Of any module: what does not act changes no digest, and any statement that acts changes one."""

import ast
import contextlib

from hypothesis import given, settings
from hypothesis import strategies as st

from ci_perf.program import units

NAMES = st.sampled_from(["alpha", "beta", "gamma", "delta"])
VALUES = st.sampled_from(["1", "'text'", "x + y", "[1, 2]", "f(x, k=3)", "f'{x!r:>9}'", "a.b[0]"])
KINDS = ["simple", "if", "def", "class", "try"]
SIMPLE = st.one_of(
    st.builds("{} = {}".format, NAMES, VALUES),
    st.builds("print({})".format, VALUES),
    st.just("del x"),
)


@st.composite
def blocks(draw, depth=2, *, in_function=False):
    """Some statements, as lines that are not yet indented."""
    lines = []
    for _ in range(draw(st.integers(1, 3))):
        kind = draw(st.sampled_from(KINDS if depth else KINDS[:1]))
        if kind == "simple":
            lines.append(draw(SIMPLE))
            continue
        is_def = in_function or kind == "def"
        inner = [f"    {line}" for line in draw(blocks(depth=depth - 1, in_function=is_def))]
        name = draw(NAMES)
        head = {
            "if": f"if {name}:",
            "def": f"def {name}(x, y={draw(VALUES)}):",
            "class": f"class {name}:",
            "try": "try:",
        }[kind]
        lines += [head, *inner]
        if kind == "try":
            lines += ["finally:", *inner]
    return lines


def digests(lines):
    return units.digests("\n".join(lines).encode())


def acting(lines):
    """The places of statements that act by themselves."""
    return [i for i, line in enumerate(lines) if not line.endswith(":")]


@settings(deadline=None, max_examples=40)
@given(blocks(), st.data())
def test_spelling_comments_and_places_change_no_digest(lines, data):
    spaced = []
    for line in lines:
        if data.draw(st.booleans()):
            spaced += ["", f"{' ' * data.draw(st.integers(0, 9))}# a comment"]
        comment = "  # type: ignore" if data.draw(st.booleans()) else ""
        spaced.append(line.replace(" = ", "  =   ") + comment)

    assert digests(spaced) == digests(lines)
    assert digests(ast.unparse(ast.parse("\n".join(lines))).splitlines()) == digests(lines)


@settings(deadline=None, max_examples=40)
@given(blocks())
def test_docstrings_change_no_digest(lines):
    documented = ['"""What it is for."""']
    for line in lines:
        documented.append(line)
        text = line.lstrip()
        if text.startswith(("def ", "class ")):
            documented.append(" " * (len(line) - len(text) + 4) + "'''What it\nis for.'''")

    assert digests(documented) == digests(lines)


@settings(deadline=None, max_examples=40)
@given(blocks(), st.data())
def test_any_other_statement_changes_a_digest(lines, data):
    place = data.draw(st.sampled_from(acting(lines)))
    indent = lines[place][: len(lines[place]) - len(lines[place].lstrip())]
    other = [*lines]
    other[place] = f"{indent}{data.draw(st.sampled_from(['other()', 'x = None', 'import other']))}"

    assert digests(other) != digests(lines)


@settings(deadline=None, max_examples=40)
@given(blocks(), st.data())
def test_a_function_is_the_only_unit_that_changes_with_its_statements(lines, data):
    inside = data.draw(NAMES.filter(lambda name: f"def {name}_(" not in lines))
    source = [*lines, f"def {inside}_():", "    first()", "    second()"]
    changed = [*source[:-1], "    third()"]
    before, after = digests(source), digests(changed)

    assert {name for name in before if before[name] != after[name]} == {f"{inside}_"}


@settings(deadline=None, max_examples=40)
@given(st.binary(max_size=300))
def test_bytes_are_divided_or_refused(data):
    said = ":"
    with contextlib.suppress(ValueError):
        said = ",".join(units.digests(data))

    assert ":" in said
