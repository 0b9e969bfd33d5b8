"""How a step talks to its runner: files of names and values, and commands in its output."""

import re
from dataclasses import dataclass, field

_COMMAND = re.compile(r"\s*::([\w-]+)(?: ([^:]*))?::(.*)")
_LEVELS = ("error", "warning", "notice")


class InvalidFileCommandError(Exception):
    """The runner would fail the step: it cannot read what the step wrote for it."""


def values(text):
    """Read NAME=VALUE lines and here-documents, as the runner does."""
    found, lines = {}, iter(text.split("\n"))
    for line in lines:
        name, equals, value = line.partition("=")
        if not line:
            continue
        if "<<" in line and not (equals and "<<" not in name):
            name, _, delimiter = line.partition("<<")
            value = "\n".join(_until(delimiter, lines, line))
        elif not equals:
            raise InvalidFileCommandError(f"Invalid format '{line}'")
        if not name:
            raise InvalidFileCommandError(f"Invalid format '{line}'. Name must not be empty")
        found[name] = value
    return found


def _until(delimiter, lines, start):
    if not delimiter:
        raise InvalidFileCommandError(f"Invalid format '{start}'. Delimiter must not be empty")
    for line in lines:
        if line == delimiter:
            return
        yield line
    raise InvalidFileCommandError(f"Matching delimiter not found '{delimiter}'")


@dataclass
class Heard:
    """What the runner takes from the output of a step: annotations, and words to mask."""

    annotations: list[tuple[str, str]] = field(default_factory=list)
    masks: list[str] = field(default_factory=list)


def heard(output):
    """Obey the commands in what a step said on stdout and stderr: the runner reads both."""
    found, deaf_until = Heard(), None
    for line in output.splitlines():
        command = _COMMAND.fullmatch(line)
        if deaf_until is not None:
            if command and command[1] == deaf_until:
                deaf_until = None
        elif command and command[1] == "stop-commands":
            deaf_until = command[3]
        elif command and command[1] in _LEVELS:
            found.annotations.append((command[1], _unescaped(command[3])))
        elif command and command[1] == "add-mask":
            found.masks.append(_unescaped(command[3]))
    return found


def _unescaped(text):
    return text.replace("%0D", "\r").replace("%0A", "\n").replace("%25", "%")
