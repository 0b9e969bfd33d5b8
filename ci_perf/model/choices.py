"""Which words may stand in a place of a document, where these are few."""

from collections.abc import Iterable, Sequence

import msgspec
from msgspec import inspect

from ci_perf.model.place import Step


def at(kind: type[msgspec.Struct], steps: Sequence[Step]) -> list[str]:
    """Return the words that a document of `kind` may have there; empty where any may stand."""
    nodes = _plain(inspect.type_info(kind))
    for step in steps:
        nodes = [plain for node in nodes for below in _below(node, step) for plain in _plain(below)]
    return [word for node in nodes for word in _words(node)]


def _plain(node: inspect.Type) -> list[inspect.Type]:
    """Take a union, and what is only said about a type, apart."""
    if isinstance(node, inspect.UnionType):
        return [plain for one in node.types for plain in _plain(one)]
    return _plain(node.type) if isinstance(node, inspect.Metadata) else [node]


def _below(node: inspect.Type, step: Step) -> Iterable[inspect.Type]:
    match node:
        case inspect.StructType() if node.tag is not None and node.tag_field == step:
            return [inspect.LiteralType((node.tag,))]
        case inspect.StructType():
            return [field.type for field in node.fields if field.encode_name == step]
        case inspect.DictType():
            return [node.value_type]
        case inspect.VarTupleType() | inspect.ListType():
            return [node.item_type]
        case _:
            return []


def _words(node: inspect.Type) -> list[str]:
    if isinstance(node, inspect.LiteralType):
        return [str(value) for value in node.values]
    return [str(one.value) for one in node.cls] if isinstance(node, inspect.EnumType) else []
