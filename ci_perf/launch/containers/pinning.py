"""From a tag to a digest, and the digest into suite.toml, where nothing else is changed.

One line is edited, as a person would, and the result is read again: where it says anything but the
same with another image, it is refused. So comments and spacing stay, without a library for it.
"""

import re
import tomllib
from collections.abc import Callable
from pathlib import Path

from ci_perf.errors import UsageError
from ci_perf.launch.containers import images
from ci_perf.launch.containers.engine import Engine, EngineError
from ci_perf.launch.containers.images import Found
from ci_perf.model.container import Local, Named
from ci_perf.system import files

# What is taken for one of these and is none, in a text of several lines, is found out afterwards.
_TABLE = re.compile(r"[ \t]*\[[ \t]*container[ \t]*\][ \t]*(#.*)?")
_OTHER_TABLE = re.compile(r"[ \t]*\[")
_KEY = re.compile(r"""^(?P<before>[ \t]*image[ \t]*=[ \t]*)("[^"\n]*"|'[^'\n]*')""")


def pin(
    engine: Engine,
    reference: str,
    *,
    allow_local: bool = False,
    ask_registry: bool = False,
    say: Callable[[str], None],
) -> str:
    """Return the reference of the image that `reference` means: NAME:TAG@sha256:...

    It is what this host has by that name, or else its registry; with `ask_registry` the registry
    is asked first. `allow_local` takes the id, which means something on this host only, of an
    image that was never pushed. Raises UsageError: no reference, never pushed; EngineError.
    """
    asked = images.parse(reference)
    found = _found(engine, asked, ask_registry=ask_registry, say=say)
    if isinstance(asked, Named):
        for digest in (asked.digest,) if asked.digest else images.pushed(asked, found):
            _confirm(engine, asked, digest)
            return f"{asked.name}{_tag(asked)}@{digest}"
    if allow_local:
        return found.identity
    raise UsageError(
        f"image {reference}: expected one that a registry has, found one without a digest, which "
        "was never pushed; push it and pin it again, or take its id, which means something only on "
        f"this host, with --local: {found.identity}"
    )


def tag_of(reference: str) -> str:
    """Return a reference without its digest where it has a tag, which may have moved since."""
    asked = images.parse(reference)
    return f"{asked.name}:{asked.tag}" if isinstance(asked, Named) and asked.tag else reference


def write(path: Path, reference: str) -> None:
    """Write an image into a suite.toml, whole or not at all.

    Raises UsageError with the lines to paste: edited() would not do; CannotWriteError.
    """
    files.write_text(path, edited(files.read_text(path), reference, name=str(path)))


def edited(text: str, reference: str, *, name: str = "suite.toml") -> str:
    """Return a suite.toml with another image, and nothing else changed. Raises UsageError."""
    changed = _with_image(text, reference)
    if not _is_only_that(text, changed, reference):
        raise UsageError(
            f"{name}: expected a table [container] with its image on a line of its own, found it "
            f'in another form; paste this instead:\n[container]\nimage = "{reference}"'
        )
    return changed


def _found(
    engine: Engine, asked: Named | Local, *, ask_registry: bool, say: Callable[[str], None]
) -> Found:
    if isinstance(asked, Named) and ask_registry:
        images.pull(engine, asked, say)
    return images.look(engine, asked) or images.pulled(engine, asked, say)


def _confirm(engine: Engine, asked: Named, digest: str) -> None:
    """Ask the registry for the digest: some engines show one for what was never pushed."""
    named = Named(name=asked.name, repository=asked.repository, tag="", digest=digest)
    try:
        engine.must("pull", "--quiet", images.spelled(named), timeout_s=images.PULL_S)
    except EngineError as error:
        raise EngineError(
            f"image {images.spelled(named)}: this host has it, and its registry does not give it: "
            f"{error}; push it first, so that every runner can have it",
            output=error.output,
        ) from None


def _tag(asked: Named) -> str:
    """Keep the tag for people; the engine takes no tag for 'latest'."""
    if asked.tag:
        return f":{asked.tag}"
    return "" if asked.digest else ":latest"


def _with_image(text: str, reference: str) -> str:
    """Replace the image of [container], or put it there, or put both at the end."""
    lines = text.split("\n")
    end = "\r" if "\r\n" in text else ""
    line = f'image = "{reference}"'
    place = next((n for n, one in enumerate(lines) if _TABLE.fullmatch(one.rstrip("\r"))), None)
    if place is None:
        # A blank line before a table, and a line feed after the last one.
        before = [] if not text else [end] if lines[-1] == "" else [lines[-1] + end, end]
        return "\n".join([*lines[:-1], *before, f"[container]{end}", line + end, ""])
    if (number := _key(lines, place)) is None:
        lines.insert(place + 1, line + end)
    else:
        lines[number] = _KEY.sub(lambda old: f'{old["before"]}"{reference}"', lines[number])
    return "\n".join(lines)


def _key(lines: list[str], table: int) -> int | None:
    """Return the number of the line of a table that holds the image, when there is one."""
    for number in range(table + 1, len(lines)):
        if _OTHER_TABLE.match(lines[number]):
            return None
        if _KEY.match(lines[number]):
            return number
    return None


def _is_only_that(text: str, changed: str, reference: str) -> bool:
    """Whether the change is this image and no more, by what TOML makes of both."""
    try:
        old, new = tomllib.loads(text), tomllib.loads(changed)
    except ValueError:  # the table was there in a form that was not seen, and now is there twice
        return False
    table = old.get("container", {})
    return isinstance(table, dict) and new == old | {"container": table | {"image": reference}}
