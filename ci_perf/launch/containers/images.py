"""Find the image of a measurement: which references are allowed, and what the engine has."""

import re
from collections.abc import Callable, Iterable

import msgspec

from ci_perf.errors import EngineError, UsageError
from ci_perf.launch.containers import engine_errors
from ci_perf.launch.containers.engine import Engine
from ci_perf.model import container as references
from ci_perf.model.container import EngineName, Image, Local, Named
from ci_perf.system import linux

# The hash of what an image was built from; our own build writes it.
INPUTS_LABEL = "dev.ci_perf.inputs"
# Some ten gigabytes over a slow line.
PULL_S = 3600.0
# What git shows of a hash is less; this is what engines show of an id.
_SHORT = 12
# A report shows 80 characters of a name, and the digest must be among them.
_NAME_CHARS = 50
_HASH = re.compile(r"(?:sha256:)?(?P<hex>[0-9a-f]{12,64})")
# What engines answer about an image that the host does not have: docker, podman.
_UNKNOWN = ("no such image", "image not known")
# Where podman keeps what was built here: no registry, whatever digest it shows.
_BUILT_HERE = "localhost"


class HostImage(msgspec.Struct, frozen=True, kw_only=True):
    """An image that the host has. ``digests`` are as the engine shows them: NAME@sha256:..."""

    identity: str
    digests: tuple[str, ...]
    inputs: str

    def digests_of(self, repository: str) -> tuple[str, ...]:
        """Return the digests, "sha256:...", that the image has in one repository."""
        names = [name for name in map(_parsed, self.digests) if isinstance(name, Named)]
        return tuple(name.digest for name in names if name.repository == repository and name.digest)


def parse(reference: str) -> Named | Local:
    """Take a reference apart. Raises UsageError that shows it."""
    try:
        return references.parse_reference(reference)
    except ValueError as error:
        raise UsageError(f"image {reference!r}: {error}") from None


def is_pinned(reference: str) -> bool:
    """Whether a reference always means the same image. Raises UsageError: no reference."""
    asked = parse(reference)
    return isinstance(asked, Local) or bool(asked.digest)


def check(reference: str, *, allow_unpinned: bool) -> None:
    """Refuse a reference that is invalid, or may mean another image tomorrow. Raises UsageError."""
    asked = parse(reference)
    if allow_unpinned or isinstance(asked, Local) or asked.digest:
        return
    tag = f"the tag {asked.tag!r}" if asked.tag else "neither digest nor tag, which means 'latest'"
    raise UsageError(
        f"image {reference}: expected one that is pinned (NAME@sha256:...), found {tag}: it may be "
        f"another image tomorrow; next: `ci-perf image pin {reference}`, or measure all the same "
        "with --allow-unpinned, which marks the run"
    )


def is_allowed(reference: str, prefixes: Iterable[str]) -> bool:
    """Whether suite.toml may name an image; every one where there is no prefix.

    Raises UsageError: no such reference, no such prefix.
    """
    asked = parse(reference)
    under = [_is_under(asked, prefix) for prefix in prefixes]  # all are checked: one may be wrong
    return not under or any(under)


def resolve(
    engine: Engine, reference: str, *, allow_unpinned: bool, say: Callable[[str], None]
) -> Image:
    """Find an image, or pull it, and say what it is.

    ``config`` of the answer is what must be run: a tag may move between the look and the launch.
    Raises UsageError: not pinned; EngineError: not there, or not what the digest says.
    """
    check(reference, allow_unpinned=allow_unpinned)
    version, asked = engine.version(), parse(reference)
    image = look(engine, asked)
    if image is None:
        image = pulled(engine, asked, say)
    return Image(
        reference=reference,
        digest=_digest(asked, image),
        config=image.identity,
        inputs=image.inputs,
        is_pinned=is_pinned(reference),
        engine=engine.name,
        engine_version=linux.short(version),
    )


def name_for_comparison(image: Image) -> str:
    """Name an image so that it reads the same on every machine that has it.

    By its digest, and of its name only the last word, which a mirror keeps. One of this host: by
    what it was built from, or else by its id.
    """
    asked = references.parse_reference(image.reference)
    if isinstance(asked, Named) and image.digest:
        word = asked.repository.rpartition("/")[2]
        return f"{word[:_NAME_CHARS]}@sha256:{_short(image.digest)}"
    if _short(image.inputs):
        return f"built from {_short(image.inputs)}"
    return f"sha256:{_short(image.config)}"


def look(engine: Engine, asked: Named | Local) -> HostImage | None:
    """Ask the engine for an image that the host has. Raises EngineError: no answer to that."""
    answer = engine.ask("image", "inspect", spelled(asked))
    if answer.code == 0:
        return _read(engine.name, answer.out)
    if any(words in answer.err.lower() for words in _UNKNOWN):
        return None
    raise EngineError(
        engine_errors.explain(engine.name, "image inspect", answer.err), output=answer.err
    )


def pull(engine: Engine, asked: Named, say: Callable[[str], None]) -> None:
    """Fetch an image from its registry. Raises EngineError."""
    say(f"{engine.name} pulls {spelled(asked)}")
    engine.must("pull", "--quiet", spelled(asked), timeout_s=PULL_S)


def pulled(engine: Engine, asked: Named | Local, say: Callable[[str], None]) -> HostImage:
    """Fetch an image that the host does not have. Raises EngineError."""
    if isinstance(asked, Local):
        raise EngineError(
            f"image {asked.identity}: expected {engine.name} to have it, found that it does not; "
            "an id means something only on the host where the image was built: build it here, or "
            "push it to a registry and pin its digest with `ci-perf image pin NAME:TAG`"
        )
    _check_built_here(engine, asked)
    pull(engine, asked, say)
    image = look(engine, asked)
    if image is None:
        raise EngineError(
            f"image {spelled(asked)}: expected {engine.name} to have it once it was pulled, found "
            "that it does not; was it removed meanwhile?"
        )
    return image


def _check_built_here(engine: Engine, asked: Named) -> None:
    """Ask no registry for an image that podman has built: it calls it localhost/NAME."""
    here = Named(name="", repository=f"{_BUILT_HERE}/{asked.name}", tag=asked.tag, digest="")
    is_short = asked.repository != asked.name and not asked.digest
    if engine.name == "podman" and is_short and look(engine, here) is not None:
        raise UsageError(
            f"image {spelled(asked)}: expected podman to have it, found {spelled(here)}, which was "
            "built here; name it so"
        )


def spelled(asked: Named | Local) -> str:
    """Spell a reference for an engine.

    In full, so that every engine takes the same repository; without the tag where there is a
    digest: it would mean nothing, and engines differ in whether they bear it.
    """
    if isinstance(asked, Local):
        return asked.identity
    if asked.digest:
        return f"{asked.repository}@{asked.digest}"
    return f"{asked.repository}:{asked.tag or 'latest'}"


def _digest(asked: Named | Local, image: HostImage) -> str:
    """Return the digest of an image. Raises EngineError when it is not the one asked for."""
    if isinstance(asked, Local):
        _check_identity(asked, image)
        return ""
    if not asked.digest:
        return next(iter(pushed(asked, image)), "")
    if asked.digest not in [name.partition("@")[2] for name in image.digests]:
        raise EngineError(
            f"image {spelled(asked)}: expected this digest, found an image with "
            f"{', '.join(image.digests) or 'none'}; remove it and pull again"
        )
    return asked.digest


def _check_identity(asked: Local, image: HostImage) -> None:
    if asked.identity != image.identity:
        raise EngineError(
            f"image {asked.identity}: expected this id, found {image.identity}; name it by that"
        )


def pushed(asked: Named, image: HostImage) -> tuple[str, ...]:
    """Return the digests that an image has in the repository by which it was asked for."""
    is_of_registry = not asked.repository.startswith(f"{_BUILT_HERE}/")
    return image.digests_of(asked.repository) if is_of_registry else ()


class _Config(msgspec.Struct, rename="pascal"):
    labels: dict[str, str] | None = None


class _Inspected(msgspec.Struct, rename="pascal"):
    """What both engines say of an image, of all that they say."""

    id: str
    repo_digests: list[str] | None = None
    config: _Config | None = None


def _read(engine: EngineName, text: str) -> HostImage:
    try:
        (said,) = msgspec.json.decode(text, type=tuple[_Inspected])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise EngineError(
            f"`{engine} image inspect`: expected JSON of one image, found: {error}"
        ) from None
    labels = (said.config.labels if said.config else None) or {}
    return HostImage(
        identity=said.id if ":" in said.id else f"sha256:{said.id}",  # podman leaves it out
        digests=tuple(said.repo_digests or ()),
        inputs=linux.short(labels.get(INPUTS_LABEL, "")),
    )


def _parsed(reference: str) -> Named | Local | None:
    try:
        return references.parse_reference(reference)
    except ValueError:  # an engine may name an image in ways of its own
        return None


def _is_under(asked: Named | Local, prefix: str) -> bool:
    try:
        return references.is_under(asked, prefix)
    except ValueError as error:
        raise UsageError(f"--allow-image {prefix}: {error}") from None


def _short(text: str) -> str:
    """Return what engines show of a hash; nothing of what is none."""
    match = _HASH.fullmatch(text)
    return match["hex"][:_SHORT] if match else ""
