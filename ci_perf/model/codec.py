"""JSON text to structs and back; an error says where, what was expected, what was found."""

import difflib
import json
import re
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec import inspect

from ci_perf.errors import InvalidFileError
from ci_perf.model.base import SCHEMA_VERSION

T = TypeVar("T", bound=msgspec.Struct)
Step = str | int
"""A key of a mapping, or a position in a list, on the way to a value."""

# "`key` in" says that a key of the mapping is itself wrong.
_PATH = re.compile(r" - at (?P<key>`key` in )?`(?P<path>\$[^`]*)`$")
_UNKNOWN = re.compile(r"Object contains unknown field `(?P<name>[^`]*)`")
_MISSING = re.compile(r"Object missing required field `(?P<name>[^`]*)`")
_PATTERN = re.compile(r"`str` matching regex (?P<spelled>'.*')", re.DOTALL)
_NO_CHOICE = re.compile(r"Invalid (enum )?value (?P<found>.+)", re.DOTALL)
# A step of msgspec's path; "[...]" stands for some key of a mapping.
_STEP = re.compile(r"\.([A-Za-z0-9_]+)|\[(\d+)\]|(\[\.\.\.\])")
_PLAIN = re.compile(r"[A-Za-z0-9_.=+-]+")


class TwiceError(ValueError):
    """A key stands twice in one object."""


class _Header(msgspec.Struct):
    schema_version: int = SCHEMA_VERSION


def decode(text: str | bytes, kind: type[T], *, name: str) -> T:
    """Read one document of `kind`; `name` (a path, mostly) begins every error message.

    Raises InvalidFileError: not JSON, not UTF-8, wrong type, unknown or missing key, value out of
    range, NaN or Infinity, nested too deep, written by a newer ci-perf, or with a key that stands
    twice: people would read the first one.
    """
    try:
        raw = text.encode() if isinstance(text, str) else text
        _check_version(msgspec.json.decode(raw, type=_Header).schema_version, name)
        document = msgspec.json.decode(raw, type=kind)
        # As we write it today: the quickest proof that each key stands once.
        if encode(document).encode() != raw and not _repeats_itself(raw):
            # 0.15 s for 10 MB. As a float: Python reads no number of thousands of digits.
            json.loads(text, object_pairs_hook=build_object, parse_int=float)
    except TwiceError as error:
        raise InvalidFileError(f"{name}: {error}") from None
    except msgspec.ValidationError as error:
        raise InvalidFileError(f"{name}: {_explain(error, _parse_text(text), kind)}") from None
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
    return document


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


def drop_unknown(data: object, kind: type[msgspec.Struct]) -> object:
    """Return parsed data without the keys that `kind` does not know, at any depth."""
    return _drop_unknown(data, _plain(inspect.type_info(kind)))


def _drop_unknown(data: object, nodes: Sequence[inspect.Type]) -> object:
    def below(step: Step) -> list[inspect.Type]:
        return [plain for node in nodes for each in _below(node, step) for plain in _plain(each)]

    match data:
        case dict():
            return {key: _drop_unknown(data[key], known) for key in data if (known := below(key))}
        case list():
            return [_drop_unknown(each, below(0)) for each in data]
        case _:
            return data


def did_you_mean(word: str, known: "list[str] | tuple[str, ...]") -> str:
    """Name the nearest known word, or all of them when none is near."""
    near = _nearest(word, known)
    if near:
        return f"did you mean {near!r}?"
    return "known: " + ", ".join(sorted(set(known))) if known else "none is known"


def _nearest(word: str, known: "list[str] | tuple[str, ...]") -> str:
    return next(iter(difflib.get_close_matches(word, known, n=1, cutoff=0.6)), "")


def _check_version(version: int, name: str) -> None:
    if version > SCHEMA_VERSION:
        msg = (
            f"{name}: $.schema_version: expected at most {SCHEMA_VERSION}, found {version}: the "
            "file was written by a newer ci-perf; upgrade this one"
        )
        raise InvalidFileError(msg)
    if version < 1:
        msg = f"{name}: $.schema_version: expected {SCHEMA_VERSION}, found {version}"
        raise InvalidFileError(msg)


def _repeats_itself(raw: bytes) -> bool:
    """Whether JSON is the same once it was read: as we write it, with each key once."""
    return msgspec.json.format(raw, indent=-1) == msgspec.json.encode(msgspec.json.decode(raw))


def build_object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Return an object of JSON. Raises TwiceError."""
    document = dict(pairs)
    if len(document) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise TwiceError(f"expected each key once, found {twice!r} twice")
    return document


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
    steps: list[Step] | None = []
    if where:
        path, text = where["path"], text[: where.start()]
        steps = _steps(f"{path}[...]" if where["key"] else path, data, kind, said)
        path = _spell_path(steps) if steps is not None else path
    if unknown := _UNKNOWN.search(text):
        known = [] if steps is None else _keys(kind, steps)
        return f"{path}: unknown key {unknown['name']!r}; {did_you_mean(unknown['name'], known)}"
    if missing := _MISSING.search(text):
        whose = f" of a {kind.__name__.lower()} of ci-perf" if path == "$" else ""
        return f"{path}: expected the field {missing['name']!r}{whose}, found none"
    if (wrong := _NO_CHOICE.fullmatch(text)) and (known := _known(kind, steps, where)):
        return f"{path}: {_suggest_words(wrong['found'], known)}"
    text = _PATTERN.sub(_in_words, text).replace("`", "").replace("Expected ", "expected ", 1)
    if where and where["key"]:
        return f"{path}: the key: {text}"
    if ", got" in text or text.startswith("Invalid") or ", found" in text:
        return f"{path}: {text.replace(', got', ', found')}"
    return f"{path}: {text}{_found(data, steps)}"


def _in_words(pattern: re.Match[str]) -> str:
    """Say what a pattern asks for, where we have words for it."""
    from ci_perf.model.container import IN_WORDS  # late: `ci-perf --help` needs no codec

    matching = (words for known, words in IN_WORDS.items() if repr(known) == pattern["spelled"])
    return next(matching, pattern[0])


def _known(
    kind: type[msgspec.Struct], steps: list[Step] | None, where: re.Match[str] | None
) -> list[str]:
    """Return what may stand where the error lies; empty where that cannot be told."""
    if steps is None or (where is not None and where["key"]):
        return []
    return [word for node in _types_at(kind, steps) for word in _words(node)]


def _suggest_words(word: str, known: list[str]) -> str:
    """Say which words are known, and which of them may be meant."""
    near = _nearest(word.strip("'"), known)
    meant = f"; did you mean {near!r}?" if near else ""
    which = "one of " if len(known) > 1 else ""
    return f"expected {which}{', '.join(map(repr, known))}, found {word}{meant}"


def _found(data: object, steps: list[Step] | None) -> str:
    """Show the offending value, when msgspec's path leads to it."""
    if steps is None or (value := _value_at(data, steps)) is None:
        return ""
    try:
        return f", found {json.dumps(value, default=str)[:80]}"
    except (RecursionError, ValueError):  # nested too deep, a number of thousands of digits
        return ""


def _parse_text(text: str | bytes) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


# --- where in a document an error lies


def _steps(path: str, data: object, kind: type[msgspec.Struct], said: str) -> list[Step] | None:
    """Return the keys of msgspec's `path`, and those that it leaves out; `None` where unknown."""
    steps: list[Step] = []
    for field, index, some_key in _STEP.findall(path):
        step: Step | None = field or (int(index) if index else None)
        if some_key:
            step = _culprit(data, steps, kind, said)
        if step is None:
            return None
        steps.append(step)
    return steps


def _culprit(data: object, steps: list[Step], kind: type[msgspec.Struct], said: str) -> str | None:
    """Find the key that gets the same error when it is alone in its mapping, by halving."""
    mapping = _value_at(data, steps)
    keys = list(mapping) if isinstance(mapping, dict) else []
    while len(keys) > 1:
        half = keys[: len(keys) // 2]
        guilty = _error_of(_with_only(data, steps, half), kind) == said
        keys = half if guilty else keys[len(half) :]
    return keys[0] if keys and _error_of(_with_only(data, steps, keys), kind) == said else None


def _value_at(data: object, steps: list[Step]) -> Any:  # noqa: ANN401  whatever stands there
    """Return what the steps lead to; nothing when they lead nowhere."""
    value: Any = data
    for step in steps:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return None
    return value


def _with_only(data: Any, steps: list[Step], keys: list[str]) -> object:  # noqa: ANN401
    """Copy the data with nothing but `keys` in the mapping that the steps lead to."""
    if not steps:
        return {key: data[key] for key in keys}
    copy = data.copy()
    copy[steps[0]] = _with_only(data[steps[0]], steps[1:], keys)
    return copy


def _error_of(data: object, kind: type[msgspec.Struct]) -> str:
    try:
        msgspec.convert(data, type=kind)
    except msgspec.ValidationError as error:
        return str(error)
    return ""


def _spell_path(steps: list[Step]) -> str:
    """Write the steps as a path: "$.suites.smoke.workloads[0]"."""
    parts = ["$"]
    for step in steps:
        plain = isinstance(step, str) and _PLAIN.fullmatch(step)
        parts.append(f".{step}" if plain else f"[{json.dumps(step)[:80]}]")
    return "".join(parts)


# --- which words may stand in a place, where these are few


def _keys(kind: type[msgspec.Struct], steps: Sequence[Step]) -> list[str]:
    """Return the keys that the table at `steps` may have."""
    structs = [n for n in _types_at(kind, steps) if isinstance(n, inspect.StructType)]
    return [field.encode_name for node in structs for field in node.fields]


def _types_at(kind: type[msgspec.Struct], steps: Sequence[Step]) -> list[inspect.Type]:
    """Return the types that the value at `steps` may have."""
    nodes = _plain(inspect.type_info(kind))
    for step in steps:
        nodes = [plain for node in nodes for below in _below(node, step) for plain in _plain(below)]
    return nodes


def _plain(node: inspect.Type) -> list[inspect.Type]:
    """Return the types of a union, and the type that metadata describe."""
    if isinstance(node, inspect.UnionType):
        return [plain for part in node.types for plain in _plain(part)]
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
    return [str(member.value) for member in node.cls] if isinstance(node, inspect.EnumType) else []
