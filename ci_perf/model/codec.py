"""JSON text to structs and back; an error says where, what was expected, what was found."""

import difflib
import json
import re
from typing import Any, TypeVar

import msgspec

from ci_perf.errors import InvalidFileError
from ci_perf.model.base import SCHEMA_VERSION

T = TypeVar("T", bound=msgspec.Struct)

_PATH = re.compile(r" - at `(?P<path>\$[^`]*)`$")
_STEP = re.compile(r"\.([A-Za-z0-9_]+)|\[(\d+)\]")
_UNKNOWN = re.compile(r"Object contains unknown field `(?P<name>[^`]*)`")


class _Header(msgspec.Struct):
    schema_version: int = SCHEMA_VERSION


def decode(text: str | bytes, kind: type[T], *, name: str) -> T:
    """Read one document of `kind`; `name` (a path, mostly) begins every error message.

    Raises InvalidFileError: not JSON, not UTF-8, wrong type, unknown or missing key, value out of
    range, NaN or Infinity, or written by a newer ci-perf.
    """
    try:
        _check_version(msgspec.json.decode(text, type=_Header).schema_version, name)
        return msgspec.json.decode(text, type=kind)
    except msgspec.ValidationError as error:
        raise InvalidFileError(f"{name}: {_explain(error, _parsed(text), kind)}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        msg = (
            f"{name}: expected a JSON document written by ci-perf, found: {error}. "
            "Was the file cut off, or merged with conflict markers?"
        )
        raise InvalidFileError(msg) from None


def convert(data: object, kind: type[T], *, name: str) -> T:
    """Like `decode`, for data that has already been parsed (TOML)."""
    try:
        version = data.get("schema_version", SCHEMA_VERSION) if isinstance(data, dict) else 0
        if isinstance(version, int):
            _check_version(version, name)
        return msgspec.convert(data, type=kind)
    except msgspec.ValidationError as error:
        raise InvalidFileError(f"{name}: {_explain(error, data, kind)}") from None


def encode(document: msgspec.Struct) -> str:
    """Write `document` so that the same document always gives the same text."""
    raw = msgspec.json.encode(document, order="deterministic")
    return msgspec.json.format(raw, indent=1).decode() + "\n"


def did_you_mean(word: str, known: "list[str] | tuple[str, ...]") -> str:
    """Name the nearest known word, or all of them when none is near."""
    near = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    if near:
        return f"did you mean {near[0]!r}?"
    return "known: " + ", ".join(sorted(known)) if known else "none is known"


def _check_version(found: int, name: str) -> None:
    if found > SCHEMA_VERSION:
        msg = (
            f"{name}: $.schema_version: expected at most {SCHEMA_VERSION}, found {found}: the file "
            "was written by a newer ci-perf; upgrade this one"
        )
        raise InvalidFileError(msg)
    if found < 1:
        msg = f"{name}: $.schema_version: expected {SCHEMA_VERSION}, found {found}"
        raise InvalidFileError(msg)


def _explain(error: msgspec.ValidationError, data: object, kind: type[msgspec.Struct]) -> str:
    text = str(error)
    path, where = "$", _PATH.search(text)
    if where:
        path, text = where["path"], text[: where.start()]
    if unknown := _UNKNOWN.search(text):
        return f"{path}: unknown key {unknown['name']!r}; " + did_you_mean(
            unknown["name"], _field_names(kind)
        )
    text = text.replace("`", "").replace("Expected ", "expected ", 1)
    if ", got" in text or "missing required field" in text:
        return f"{path}: {text.replace(', got', ', found')}"
    return f"{path}: {text}{_found(data, path)}"


def _found(data: object, path: str) -> str:
    """Show the offending value, when msgspec's path leads to it."""
    value: Any = data
    if "[...]" in path:
        return ""
    try:
        for key, index in _STEP.findall(path):
            value = value[key] if key else value[int(index)]
    except (KeyError, IndexError, TypeError):
        return ""
    return f", found {json.dumps(value, default=str)[:80]}"


def _parsed(text: str | bytes) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _field_names(kind: type[msgspec.Struct]) -> list[str]:
    """Every key that a document of this kind may have, at any depth."""
    names: set[str] = set()
    seen: set[type] = set()

    def visit(node: msgspec.inspect.Type) -> None:
        if isinstance(node, msgspec.inspect.StructType):
            if node.cls in seen:
                return
            seen.add(node.cls)
            for field in node.fields:
                names.add(field.encode_name)
                visit(field.type)
        for child in ("item_type", "value_type"):
            if hasattr(node, child):
                visit(getattr(node, child))
        for child in ("types", "item_types"):
            for part in getattr(node, child, ()):
                visit(part)

    visit(msgspec.inspect.type_info(kind))
    return sorted(names)
