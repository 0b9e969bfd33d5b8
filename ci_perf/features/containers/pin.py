"""Pin the image that a suite is measured in: write its digest into suite.toml.

The image that is there is replaced, or a table with it put at the end; comments and spacing stay.
"""

import contextlib
import re
import shlex
import tomllib
from pathlib import Path

from ci_perf import suite
from ci_perf.api_types import Notify
from ci_perf.errors import EngineError, UsageError
from ci_perf.features.containers.launch import engine as engines
from ci_perf.features.containers.launch import images
from ci_perf.features.containers.launch.engine import Engine
from ci_perf.model.container import EngineName, Named
from ci_perf.system import files


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
    files.write_text(path, replace_image(files.read_text(path), before, after, name=str(path)))
    notify(f"{path}: $.container.image: {before or 'none'} → {after}")
    notify(f"next: git add {shlex.quote(str(path))} && git commit")
    return after


def replace_image(text: str, before: str, after: str, *, name: str = "suite.toml") -> str:
    """Return a suite.toml with another image, and nothing else changed. Raises UsageError."""
    line = f'image = "{after}"'
    if before:
        changed = re.sub(rf"""(["']){re.escape(before)}\1""", f'"{after}"', text, count=1)
    else:
        changed = f"{text.rstrip()}\n\n[container]\n{line}\n".lstrip()
    old = tomllib.loads(text)
    wanted = old | {"container": old.get("container", {}) | {"image": after}}
    with contextlib.suppress(ValueError):  # the table is there already
        if tomllib.loads(changed) == wanted:
            return changed
    raise UsageError(
        f"{name}: expected a table [container] with its image on a line of its own, found it in "
        f"another form; paste this instead:\n[container]\n{line}"
    )


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
