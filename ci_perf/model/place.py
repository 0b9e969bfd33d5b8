"""Where in a document an error lies: msgspec's path, with the keys that it leaves out."""

import json
import re
from typing import Any

import msgspec

Step = str | int

# "[...]" stands for some key of a mapping.
_STEP = re.compile(r"\.([A-Za-z0-9_]+)|\[(\d+)\]|(\[\.\.\.\])")
_PLAIN = re.compile(r"[A-Za-z0-9_.=+-]+")


def steps(path: str, data: object, kind: type[msgspec.Struct], said: str) -> list[Step] | None:
    """Return the keys of `path`, with those that msgspec leaves out found again."""
    found: list[Step] = []
    for field, index, some_key in _STEP.findall(path):
        step: Step | None = field or (int(index) if index else None)
        if some_key:
            step = _culprit(data, found, kind, said)
        if step is None:
            return None
        found.append(step)
    return found


def _culprit(data: object, steps: list[Step], kind: type[msgspec.Struct], said: str) -> str | None:
    """Find the key that gets the same error when it is alone in its mapping, by halving."""
    mapping = at(data, steps)
    keys = list(mapping) if isinstance(mapping, dict) else []
    while len(keys) > 1:
        half = keys[: len(keys) // 2]
        guilty = _error(_only(data, steps, half), kind) == said
        keys = half if guilty else keys[len(half) :]
    return keys[0] if keys and _error(_only(data, steps, keys), kind) == said else None


def at(data: object, steps: list[Step]) -> Any:  # noqa: ANN401  whatever stands there
    """Return what the steps lead to; nothing when they lead nowhere."""
    value: Any = data
    for step in steps:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return None
    return value


def _only(data: Any, steps: list[Step], keys: list[str]) -> object:  # noqa: ANN401
    """Copy the data with nothing but `keys` in the mapping that the steps lead to."""
    if not steps:
        return {key: data[key] for key in keys}
    copy = data.copy()
    copy[steps[0]] = _only(data[steps[0]], steps[1:], keys)
    return copy


def _error(data: object, kind: type[msgspec.Struct]) -> str:
    try:
        msgspec.convert(data, type=kind)
    except msgspec.ValidationError as error:
        return str(error)
    return ""


def spell(steps: list[Step]) -> str:
    """Write the steps as a path: "$.suites.smoke.workloads[0]"."""
    parts = ["$"]
    for step in steps:
        plain = isinstance(step, str) and _PLAIN.fullmatch(step)
        parts.append(f".{step}" if plain else f"[{json.dumps(step)[:80]}]")
    return "".join(parts)
