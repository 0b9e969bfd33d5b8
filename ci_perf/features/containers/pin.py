"""Pin the image that a suite is measured in: write its digest into suite.toml.

One line is edited, as a person would, and the result is read again: where it says anything but the
same with another image, it is refused. So comments and spacing stay.
"""

import re
import shlex
import tomllib
from pathlib import Path

from ci_perf import suite
from ci_perf.errors import EngineError, UsageError
from ci_perf.features.containers.launch import engine as engines
from ci_perf.features.containers.launch import images
from ci_perf.features.containers.launch.engine import Engine
from ci_perf.gate import Notify
from ci_perf.model.container import EngineName, Named
from ci_perf.system import files

# What is taken for one of these and is none, in a text of several lines, is found out afterwards.
_TABLE = re.compile(r"[ \t]*\[[ \t]*container[ \t]*\][ \t]*(#.*)?")
_OTHER_TABLE = re.compile(r"[ \t]*\[")
_KEY = re.compile(r"""^(?P<before>[ \t]*image[ \t]*=[ \t]*)("[^"\n]*"|'[^'\n]*')""")


def pin(
    reference: str | None,
    workloads: Path,
    engine_name: EngineName,
    *,
    ask_registry: bool,
    allow_local: bool,
    notify: Notify,
) -> str:
    """Write the digest of an image into WORKLOADS/suite.toml, and return the pinned reference.

    Without a `reference`, the tag of the image in suite.toml is meant. With `ask_registry` the
    registry is asked even where this host has such an image. `allow_local` takes the id of an image
    that was never pushed, which means something on this host only. Raises CiPerfError.
    """
    path = workloads / "suite.toml"
    before = suite.load(workloads).container.image
    if not (reference or before):
        raise UsageError(
            f"{path}: $.container.image: expected an image to pin, found none; name one: "
            "`ci-perf pin NAME:TAG`"
        )
    after = _find_digest(
        engines.find(engine_name),
        reference or _without_digest(before),
        ask_registry=ask_registry,
        allow_local=allow_local,
        notify=notify,
    )
    if after.startswith("sha256:"):
        notify(f"warning: {after} means something on this host only: no other runner has it")
    if after == before:
        notify(f"{path}: has this image already")
        return after
    files.write_text(path, replace_image(files.read_text(path), after, name=str(path)))
    notify(f"{path}: $.container.image: {before or 'none'} → {after}")
    notify(f"next: git add {shlex.quote(str(path))} && git commit")
    return after


def replace_image(text: str, reference: str, *, name: str = "suite.toml") -> str:
    """Return a suite.toml with another image, and nothing else changed. Raises UsageError."""
    changed = _with_image(text, reference)
    if not _changes_only_the_image(text, changed, reference):
        raise UsageError(
            f"{name}: expected a table [container] with its image on a line of its own, found it "
            f'in another form; paste this instead:\n[container]\nimage = "{reference}"'
        )
    return changed


def _find_digest(
    engine: Engine, reference: str, *, ask_registry: bool, allow_local: bool, notify: Notify
) -> str:
    """Return what a reference means now: NAME:TAG@sha256:..., or an id of this host."""
    asked = images.parse(reference)
    if isinstance(asked, Named) and ask_registry:
        images.pull(engine, asked, notify)
    image = images.look(engine, asked) or images.pull_image(engine, asked, notify)
    if isinstance(asked, Named):
        digest = asked.digest or images.find_pushed_digest(asked, image)
        if digest:
            _confirm(engine, asked, digest)
            # The tag is for people; the engine takes no tag for 'latest'.
            tag = asked.tag or ("" if asked.digest else "latest")
            return f"{asked.name}{':' if tag else ''}{tag}@{digest}"
    if allow_local:
        return image.identity
    raise UsageError(
        f"image {reference}: expected one that a registry has, found one without a digest, which "
        "was never pushed; push it and pin it again, or take its id, which means something only on "
        f"this host, with --local: {image.identity}"
    )


def _confirm(engine: Engine, asked: Named, digest: str) -> None:
    """Ask the registry for the digest: some engines show one for what was never pushed."""
    named = Named(name=asked.name, repository=asked.repository, tag="", digest=digest)
    try:
        engine.must("pull", "--quiet", images.spell_reference(named), timeout_s=images.PULL_S)
    except EngineError as error:
        raise EngineError(
            f"image {images.spell_reference(named)}: this host has it, and its registry does "
            f"not give it: {error}; push it first, so that every runner can have it",
            output=error.output,
        ) from None


def _without_digest(reference: str) -> str:
    """Return a reference without its digest where it has a tag, which may have moved since."""
    asked = images.parse(reference)
    return f"{asked.name}:{asked.tag}" if isinstance(asked, Named) and asked.tag else reference


def _with_image(text: str, reference: str) -> str:
    """Replace the image of [container], or put it there, or put both at the end."""
    lines = text.split("\n")
    end = "\r" if "\r\n" in text else ""
    setting = f'image = "{reference}"'
    place = next((n for n, line in enumerate(lines) if _TABLE.fullmatch(line.rstrip("\r"))), None)
    if place is None:
        # A blank line before a table, and a line feed after the last one.
        before = [] if not text else [end] if lines[-1] == "" else [lines[-1] + end, end]
        return "\n".join([*lines[:-1], *before, f"[container]{end}", setting + end, ""])
    for number in range(place + 1, len(lines)):
        if _OTHER_TABLE.match(lines[number]):
            break
        if _KEY.match(lines[number]):
            lines[number] = _KEY.sub(lambda old: f'{old["before"]}"{reference}"', lines[number])
            return "\n".join(lines)
    lines.insert(place + 1, setting + end)
    return "\n".join(lines)


def _changes_only_the_image(text: str, changed: str, reference: str) -> bool:
    """Whether the change is this image and no more, by what TOML makes of both."""
    try:
        old, new = tomllib.loads(text), tomllib.loads(changed)
    except ValueError:  # the table was there in a form that was not seen, and now is there twice
        return False
    table = old.get("container", {})
    return isinstance(table, dict) and new == old | {"container": table | {"image": reference}}
