"""Divide a Python source into the parts that execute by themselves, and hash their syntax trees.

The source may be a stranger's: it is parsed, never run, and bounded before it is parsed.
"""

import ast
import functools
import io
import tokenize
import warnings
from collections.abc import Iterable, Iterator

from ci_perf.model.program import digest

MODULE = ":"
# The largest module of torch has 0.6 MiB; the tree of a source takes some hundred times its size.
MAX_SOURCE_BYTES = 2**20
# Any other codec may be one that an installed package brings: it would be run.
_ENCODINGS = {"ascii", "iso-8859-1", "utf-8", "utf-8-sig"}
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Scope = _Function | ast.Lambda
_Documented = (ast.Module, ast.ClassDef, *_Function.__args__)
# `ctx` follows from the place; the others are comments, or how a string is spelled.
_UNREAD_FIELDS = {"ctx", "kind", "type_comment", "type_ignores"}
# The compiler gives a class a cell for itself where one of its functions has one of these names.
_CLASS_CELL = {"super", "__class__"}

_UNPARSABLE = (
    MemoryError,
    OverflowError,
    RecursionError,
    SyntaxError,
    SystemError,
    UnicodeError,
)

# What is left to write: text, a node, or a list of nodes.
_Part = str | ast.AST | list[object]
# The name of a unit, its statements, and the prefix of the names within; `None` in a function.
_Unit = tuple[str, list[ast.stmt], str | None]


def digests(source: bytes) -> dict[str, str]:
    """Return the digest of each unit of a module: functions, class bodies and the module's body.

    A unit is called as its code object is: "Net.forward" with all that is nested in it, "Net:" for
    the body of a class, ":" for that of the module. Functions of one name are one unit. Equal
    digests mean equal behaviour, except for docstrings, positions, and what reads either. They are
    equal across Python 3.11 to 3.14. Raises ValueError for what cannot be parsed here.
    """
    module = _parsed(source)
    written: dict[str, list[str]] = {}
    units: list[_Unit] = [(MODULE, module.body, "")]
    futures = _futures(module)
    for name, statements, prefix in units:  # it grows: bodies name what is in them
        tokens = _tokens(_without_docstring(statements), prefix, units)
        written.setdefault(name, [futures]).extend(tokens)
    return {name: digest("\n".join(tokens).encode()) for name, tokens in written.items()}


def _parsed(source: bytes) -> ast.Module:
    if len(source) > MAX_SOURCE_BYTES:
        raise ValueError(f"expected at most {MAX_SOURCE_BYTES:,} bytes, found {len(source):,}")
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(source).readline)
        if encoding not in _ENCODINGS:
            raise ValueError(f"expected UTF-8, found {encoding}")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(source.decode(encoding))
    except _UNPARSABLE as error:
        raise ValueError(f"expected Python, found {type(error).__name__}") from None


def _futures(module: ast.Module) -> str:
    """Name the features of `from __future__`, which change how every function is compiled."""
    names = {
        alias.name
        for statement in module.body
        if isinstance(statement, ast.ImportFrom) and statement.module == "__future__"
        for alias in statement.names
    }
    return ",".join(sorted(names))


def _tokens(statements: list[ast.stmt], prefix: str | None, units: list[_Unit]) -> Iterator[str]:
    """Write statements in canonical form, without recursion: a tree may be deep.

    With a prefix, functions and classes are written without their bodies, which become `units`.
    """
    left: list[_Part] = [[*statements]]
    while left:
        part = left.pop()
        if isinstance(part, str):
            yield part
        elif isinstance(part, list):
            yield "["
            left.append("]")
            left += [item if isinstance(item, ast.AST) else _value(item) for item in reversed(part)]
        elif prefix is not None and isinstance(part, _Function):
            units.append((prefix + part.name, [part], None))
            left += reversed([*_fields(part, but="body"), *_visible(part, is_method=bool(prefix))])
        elif prefix is not None and isinstance(part, ast.ClassDef):
            units.append((f"{prefix}{part.name}:", part.body, f"{prefix}{part.name}."))
            left += reversed([*_fields(part, but="body")])
        else:
            left += reversed([*_fields(part)])


def _fields(node: ast.AST, *, but: str = "") -> Iterator[_Part]:
    """Write a node: its type, then each field by name; absent and empty ones are left out.

    A field that a newer Python has added is empty where an older one can parse the source.
    """
    yield f"({type(node).__name__}"
    for name in _read_fields(node._fields):
        value: object = getattr(node, name, None)
        if name == but:
            continue
        if isinstance(node, ast.Constant):
            yield _value(value)
        elif isinstance(value, list):
            if items := _items(node, name, value):
                yield name
                yield [*items]
        elif value is not None:
            yield name
            yield value if isinstance(value, ast.AST) else _value(value)
    yield ")"


@functools.cache
def _read_fields(fields: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted({*fields} - _UNREAD_FIELDS))


def _items(node: ast.AST, field: str, items: list[ast.stmt]) -> Iterable[object]:
    """Return the items of a field as every Python has them."""
    if field == "body" and isinstance(node, _Documented):
        return _without_docstring(items)
    return [*_joined(items)] if isinstance(node, ast.JoinedStr) else items


def _joined(values: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Join what Python 3.12 leaves as several pieces of text in an f-string."""
    text = ""
    for value in values:
        if isinstance(value, ast.Constant):
            text += str(value.value)
            continue
        if text:
            yield ast.Constant(text)
        text = ""
        yield value
    if text:
        yield ast.Constant(text)


def _without_docstring(statements: list[ast.stmt]) -> list[ast.stmt]:
    match statements:
        case [ast.Expr(value=ast.Constant(value=str())), *others]:
            return others
        case _:
            return statements


def _value(value: object) -> str:
    """Spell a constant alike in each Python: newer ones print more characters of Unicode."""
    spelled = hex(value) if type(value) is int else ascii(value)
    return f"{type(value).__name__} {spelled}"


def _visible(function: ast.stmt, *, is_method: bool) -> Iterator[str]:
    """Write what the body of a function shows of itself before it runs.

    Whether a call runs it or makes a generator; and in a class, what the compiler gathers for the
    class: a cell, and from Python 3.13 the names of attributes that are assigned to `self`.
    """
    yield f"yields {_is_generator(function)}"
    if is_method:
        nodes = [*ast.walk(function)]
        names = {node.id for node in nodes if isinstance(node, ast.Name)}
        yield f"cell {sorted(names & _CLASS_CELL)}"
        yield f"attributes {sorted({*_assigned_to_self(nodes)})}"


def _assigned_to_self(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        match node:
            case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Store()):
                yield name
            case _:
                pass


def _is_generator(function: ast.stmt) -> bool:
    left = [*getattr(function, "body", ())]
    while left:
        node = left.pop()
        if isinstance(node, ast.Yield | ast.YieldFrom):
            return True
        inner = getattr(node, "body", ()) if isinstance(node, _Scope) else ()
        bodies = inner if isinstance(inner, list) else [inner]
        left += [child for child in ast.iter_child_nodes(node) if child not in bodies]
    return False
