"""Every small fault that can be put into one file: the operators, and where they apply. Pure."""

import ast
import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

Change = Callable[[Any], Iterator[ast.AST]]

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}


def _comparison(node: ast.Compare) -> Iterator[ast.AST]:
    for index, operator in enumerate(node.ops):
        other = copy.deepcopy(node)
        other.ops[index] = _COMPARISONS[type(operator)]()
        yield other


def _arithmetic(node: ast.BinOp | ast.AugAssign) -> Iterator[ast.AST]:
    """Swap an operator; less text is no fault that anybody makes."""
    if type(node.op) in _ARITHMETIC and not any(map(_is_text, ast.iter_child_nodes(node))):
        other = copy.deepcopy(node)
        other.op = _ARITHMETIC[type(node.op)]()
        yield other


def _is_text(node: ast.AST) -> bool:
    is_constant = isinstance(node, ast.Constant) and isinstance(node.value, str)
    return is_constant or isinstance(node, ast.JoinedStr)


def _conditions(node: ast.BoolOp) -> Iterator[ast.AST]:
    """Swap `and` and `or`, and leave out each condition."""
    other = copy.deepcopy(node)
    other.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
    yield other
    for index in range(len(node.values)):
        rest = [value for at, value in enumerate(node.values) if at != index]
        yield rest[0] if len(rest) == 1 else ast.BoolOp(op=node.op, values=rest)


def _sign(node: ast.UnaryOp) -> Iterator[ast.AST]:
    if isinstance(node.op, ast.Not | ast.USub):
        yield node.operand


def _constant(node: ast.Constant) -> Iterator[ast.AST]:
    if isinstance(node.value, bool):
        yield ast.Constant(not node.value)
    elif isinstance(node.value, int):
        yield ast.Constant(node.value + 1)
    elif isinstance(node.value, float):
        yield ast.Constant(node.value * 2 or 1.0)


def _result(node: ast.Return) -> Iterator[ast.AST]:
    """Return nothing instead; `True` and `False` are swapped as constants."""
    is_plain = isinstance(node.value, ast.Constant) and isinstance(node.value.value, bool | None)
    if node.value is not None and not is_plain:
        yield ast.Return(value=ast.Constant(None))


def _branches(node: ast.If | ast.IfExp) -> Iterator[ast.AST]:
    other = copy.deepcopy(node)
    other.test = ast.UnaryOp(op=ast.Not(), operand=other.test)
    yield other


def _filters(node: ast.comprehension) -> Iterator[ast.AST]:
    for index in range(len(node.ifs)):
        other = copy.deepcopy(node)
        del other.ifs[index]
        yield other


def _deletion(node: ast.stmt) -> Iterator[ast.AST]:
    if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
        yield ast.Pass()


OPERATORS: dict[type[ast.AST], tuple[Change, ...]] = {
    ast.Compare: (_comparison,),
    ast.BinOp: (_arithmetic,),
    ast.AugAssign: (_arithmetic, _deletion),
    ast.BoolOp: (_conditions,),
    ast.UnaryOp: (_sign,),
    ast.Constant: (_constant,),
    ast.Return: (_result,),
    ast.If: (_branches,),
    ast.IfExp: (_branches,),
    ast.comprehension: (_filters,),
    ast.Expr: (_deletion,),
    ast.Raise: (_deletion,),
    ast.Continue: (_deletion,),
    ast.Break: (_deletion,),
}
_LEFT_ALONE = {"annotation", "returns", "decorator_list"}


@dataclass(frozen=True, slots=True)
class Place:
    """A node, how its parent holds it, and the function around it, or that it is."""

    node: ast.AST
    parent: ast.AST
    field: str
    index: int | None
    function: str

    def put(self, node: ast.AST) -> None:
        """Let the parent hold another node."""
        if self.index is None:
            setattr(self.parent, self.field, node)
        else:
            getattr(self.parent, self.field)[self.index] = node


def places(parent: ast.AST, function: str = "", scope: str = "") -> Iterator[Place]:
    """Walk in the order of the source; `scope` is what the name of a function here begins with."""
    for field, value in ast.iter_fields(parent):
        children = value if isinstance(value, list) else [value]
        for index, node in enumerate(children):
            if not isinstance(node, ast.AST) or isinstance(node, ast.JoinedStr):
                continue
            if field in _LEFT_ALONE or _is_type(node):
                continue
            inside, within = "" if field == "args" else function, scope
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                within = f"{scope}{node.name}."
            if isinstance(node, ast.FunctionDef):
                # What a cached function answers may have been computed for an earlier test.
                is_cached = any("cache" in ast.unparse(one) for one in node.decorator_list)
                inside = "" if is_cached else within[:-1]
            yield Place(node, parent, field, index if value is children else None, inside)
            yield from places(node, inside, within)


def _is_type(node: ast.AST) -> bool:
    """Whether this is `Literal[…]`, which only a type checker reads."""
    return (
        isinstance(node, ast.Subscript)
        and isinstance(node.value, ast.Name)
        and node.value.id == "Literal"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One change of one file."""

    area: str
    path: str
    tree: ast.Module
    place: Place
    node: ast.AST

    @property
    def function(self) -> str:
        """The function, with those around it; empty where every one of the file may notice."""
        return self.place.function

    @property
    def line(self) -> int:
        """Where it begins in the file as it is."""
        place = self.place
        return int(getattr(place.node, "lineno", getattr(place.parent, "lineno", 0)))

    @property
    def change(self) -> str:
        """What was, and what is."""
        return f"{_shown(self.place.node)}  ->  {_shown(self.node)}"

    def text(self) -> str:
        """Return the file with the change, without its comments."""
        self.place.put(self.node)
        text = ast.unparse(ast.fix_missing_locations(self.tree))
        self.place.put(self.place.node)
        return text


def of(area: str, path: str, source: str) -> Iterator[Mutant]:
    """Make every mutant of one file, from its first line to its last."""
    tree = ast.parse(source)
    for place in list(places(tree)):
        for change in OPERATORS.get(type(place.node), ()):
            for node in change(place.node):
                yield Mutant(area=area, path=path, tree=tree, place=place, node=node)


def _shown(node: ast.AST) -> str:
    lines = ast.unparse(node).strip().splitlines()
    return lines[0][:90] + (" …" if len(lines) > 1 or len(lines[0]) > 90 else "")
