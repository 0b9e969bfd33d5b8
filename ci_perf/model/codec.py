"""JSON text to structs and back; an error says where, what was expected, what was found."""

import difflib
import json
import re
from typing import TypeVar

import msgspec

from ci_perf.errors import InvalidFileError
from ci_perf.model import choices, place
from ci_perf.model.base import SCHEMA_VERSION
from ci_perf.model.container import IN_WORDS

T = TypeVar("T", bound=msgspec.Struct)

# "`key` in" says that a key of the mapping is itself wrong.
_PATH = re.compile(r" - at (?P<key>`key` in )?`(?P<path>\$[^`]*)`$")
_UNKNOWN = re.compile(r"Object contains unknown field `(?P<name>[^`]*)`")
_PATTERN = re.compile(r"`str` matching regex (?P<spelled>'.*')", re.DOTALL)
_NO_CHOICE = re.compile(r"Invalid (enum )?value (?P<found>.+)", re.DOTALL)


class _Header(msgspec.Struct):
    schema_version: int = SCHEMA_VERSION


def decode(text: str | bytes, kind: type[T], *, name: str) -> T:
    """Read one document of `kind`; `name` (a path, mostly) begins every error message.

    Raises InvalidFileError: not JSON, not UTF-8, wrong type, unknown or missing key, value out of
    range, NaN or Infinity, nested too deep, or written by a newer ci-perf.
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
    except UnicodeEncodeError as error:
        near = str(error.object)[max(0, error.start - 20) : error.end]
        msg = f"{name}: expected text in UTF-8, found another byte in {near!r}; take it out"
        raise InvalidFileError(msg) from None
    except RecursionError:
        raise InvalidFileError(_too_deep(name)) from None


def convert(data: object, kind: type[T], *, name: str) -> T:
    """Like `decode`, for data that has already been parsed (TOML)."""
    try:
        version = data.get("schema_version", SCHEMA_VERSION) if isinstance(data, dict) else 0
        if isinstance(version, int):
            _check_version(version, name)
        return msgspec.convert(data, type=kind)
    except msgspec.ValidationError as error:
        raise InvalidFileError(f"{name}: {_explain(error, data, kind)}") from None
    except UnicodeError as error:  # a lone surrogate in a key
        raise InvalidFileError(f"{name}: expected text in UTF-8, found: {error}") from None
    except RecursionError:
        raise InvalidFileError(_too_deep(name)) from None


def encode(document: msgspec.Struct) -> str:
    """Write `document` so that the same document always gives the same text.

    Lone surrogates (bytes of a name or an argument that are not UTF-8) become question marks.
    """
    try:
        raw = msgspec.json.encode(document, order="deterministic")
    except UnicodeEncodeError:
        plain = _in_unicode(msgspec.to_builtins(document))
        raw = msgspec.json.encode(plain, order="deterministic")
    return msgspec.json.format(raw, indent=1).decode() + "\n"


def did_you_mean(word: str, known: "list[str] | tuple[str, ...]") -> str:
    """Name the nearest known word, or all of them when none is near."""
    near = _nearest(word, known)
    if near == word:
        return "it belongs into another table"
    if near:
        return f"did you mean {near!r}?"
    return "known: " + ", ".join(sorted(set(known))) if known else "none is known"


def _nearest(word: str, known: "list[str] | tuple[str, ...]") -> str:
    return next(iter(difflib.get_close_matches(word, known, n=1, cutoff=0.6)), "")


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


def _too_deep(name: str) -> str:
    return f"{name}: expected a document of ci-perf, found one that is nested too deep to be one"


def _in_unicode(data: object) -> object:
    """Replace the lone surrogates in plain data, at any depth."""
    match data:
        case str():
            return data.encode(errors="replace").decode()
        case dict():
            return {_in_unicode(key): _in_unicode(value) for key, value in data.items()}
        case list() | tuple():
            return [_in_unicode(value) for value in data]
        case _:
            return data


def _explain(error: msgspec.ValidationError, data: object, kind: type[msgspec.Struct]) -> str:
    text = said = str(error)
    path, where = "$", _PATH.search(text)
    steps: list[place.Step] | None = []
    if where:
        path, text = where["path"], text[: where.start()]
        steps = place.steps(f"{path}[...]" if where["key"] else path, data, kind, said)
        path = place.spell(steps) if steps is not None else path
    if unknown := _UNKNOWN.search(text):
        return f"{path}: unknown key {unknown['name']!r}; " + did_you_mean(
            unknown["name"], _field_names(kind)
        )
    if (wrong := _NO_CHOICE.fullmatch(text)) and (known := _known(kind, steps, where)):
        return f"{path}: {_chosen(wrong['found'], known)}"
    text = _PATTERN.sub(_in_words, text).replace("`", "").replace("Expected ", "expected ", 1)
    if where and where["key"]:
        return f"{path}: the key: {text}"
    if ", got" in text or text.startswith(("Invalid", "Object missing")) or ", found" in text:
        return f"{path}: {text.replace(', got', ', found')}"
    return f"{path}: {text}{_found(data, steps)}"


def _in_words(pattern: re.Match[str]) -> str:
    """Say what a pattern asks for, where we have words for it."""
    known = (words for one, words in IN_WORDS.items() if repr(one) == pattern["spelled"])
    return next(known, pattern[0])


def _known(
    kind: type[msgspec.Struct], steps: list[place.Step] | None, where: re.Match[str] | None
) -> list[str]:
    """Return what may stand where the error lies; empty where that cannot be told."""
    is_key = where is not None and where["key"]
    return [] if steps is None or is_key else choices.at(kind, steps)


def _chosen(found: str, known: list[str]) -> str:
    """Say which words are known, and which of them may be meant."""
    near = _nearest(found.strip("'"), known)
    meant = f"; did you mean {near!r}?" if near else ""
    which = "one of " if len(known) > 1 else ""
    return f"expected {which}{', '.join(map(repr, known))}, found {found}{meant}"


def _found(data: object, steps: list[place.Step] | None) -> str:
    """Show the offending value, when msgspec's path leads to it."""
    if steps is None or (value := place.at(data, steps)) is None:
        return ""
    try:
        return f", found {json.dumps(value, default=str)[:80]}"
    except (RecursionError, ValueError):  # nested too deep, a number of thousands of digits
        return ""


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
