"""Find the image of a measurement: which references are allowed, and what the engine has."""

import contextlib
import re
from collections.abc import Callable, Iterable

import msgspec

from ci_perf.errors import EngineError, UsageError
from ci_perf.features.containers.launch import engine_errors
from ci_perf.features.containers.launch.engine import Engine
from ci_perf.model import container as references
from ci_perf.model.container import Image, Local, Named
from ci_perf.system import linux

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


class HostImage(msgspec.Struct, frozen=True, rename="pascal"):
    """An image that the host has: what both engines say of it, of all that they say."""

    id: str
    repo_digests: tuple[str, ...] | None = None

    @property
    def identity(self) -> str:
        """Return the id, "sha256:...": podman leaves the name of the hash out."""
        return self.id if ":" in self.id else f"sha256:{self.id}"

    @property
    def digests(self) -> tuple[str, ...]:
        """Return its digests as the engine shows them: NAME@sha256:..."""
        return self.repo_digests or ()

    def find_digest(self, repository: str) -> str:
        """Return the digest, "sha256:...", that the image has in one repository; "" for none."""
        for shown in self.digests:
            with contextlib.suppress(ValueError):  # an engine may name images in ways of its own
                image = references.parse_reference(shown)
                if isinstance(image, Named) and image.repository == repository and image.digest:
                    return image.digest
        return ""


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
        f"image {reference}: expected one that is pinned (NAME@sha256:...), found {tag}: it can "
        f"change; next: `ci-perf pin {reference}`, or allow it with --container "
        "allow-unpinned=true, which marks the run"
    )


def is_allowed(reference: str, prefixes: Iterable[str]) -> bool:
    """Whether suite.toml may name an image; every one where there is no prefix.

    Raises UsageError: no such reference, no such prefix.
    """
    asked = parse(reference)
    under = []
    for prefix in prefixes:  # all are checked: one may be wrong
        try:
            under.append(references.is_under(asked, prefix))
        except ValueError as error:
            raise UsageError(f"--container allow-image={prefix}: {error}") from None
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
        image = pull_image(engine, asked, say)
    return Image(
        reference=reference,
        digest=_digest(asked, image),
        config=image.identity,
        is_pinned=is_pinned(reference),
        engine=engine.name,
        engine_version=linux.short(version),
    )


def name_for_comparison(image: Image) -> str:
    """Name an image so that it reads the same on every machine that has it.

    By its digest, and of its name only the last word, which a mirror keeps. One that was never
    pushed: by its id.
    """
    asked = references.parse_reference(image.reference)
    if isinstance(asked, Named) and image.digest:
        word = asked.repository.rpartition("/")[2]
        return f"{word[:_NAME_CHARS]}@sha256:{_short(image.digest)}"
    return f"sha256:{_short(image.config)}"


def look(engine: Engine, asked: Named | Local) -> HostImage | None:
    """Ask the engine for an image that the host has. Raises EngineError: no answer to that."""
    answer = engine.ask("image", "inspect", spell_reference(asked))
    if answer.code == 0:
        try:
            return msgspec.json.decode(answer.out, type=tuple[HostImage])[0]
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise EngineError(
                f"`{engine.name} image inspect`: expected JSON of one image, found: {error}"
            ) from None
    if any(words in answer.err.lower() for words in _UNKNOWN):
        return None
    raise EngineError(
        engine_errors.explain(engine.name, "image inspect", answer.err), output=answer.err
    )


def pull(engine: Engine, asked: Named, say: Callable[[str], None]) -> None:
    """Fetch an image from its registry. Raises EngineError."""
    say(f"{engine.name} pulls {spell_reference(asked)}")
    engine.must("pull", "--quiet", spell_reference(asked), timeout_s=PULL_S)


def pull_image(engine: Engine, asked: Named | Local, say: Callable[[str], None]) -> HostImage:
    """Fetch an image that the host does not have. Raises EngineError."""
    if isinstance(asked, Local):
        raise EngineError(
            f"image {asked.identity}: {engine.name} does not have it. An id is known only on the "
            "host that built the image: build it here, or push it to a registry and pin its digest "
            "with `ci-perf pin NAME:TAG`"
        )
    _check_built_here(engine, asked)
    pull(engine, asked, say)
    image = look(engine, asked)
    if image is None:
        raise EngineError(
            f"image {spell_reference(asked)}: {engine.name} pulled it and does not have it now; "
            "was it removed meanwhile?"
        )
    return image


def _check_built_here(engine: Engine, asked: Named) -> None:
    """Ask no registry for an image that podman has built: it calls it localhost/NAME."""
    here = Named(name="", repository=f"{_BUILT_HERE}/{asked.name}", tag=asked.tag, digest="")
    is_short = asked.repository != asked.name and not asked.digest
    if engine.name == "podman" and is_short and look(engine, here) is not None:
        raise UsageError(
            f"image {spell_reference(asked)}: expected podman to have it, found "
            f"{spell_reference(here)}, which was built here; use that name"
        )


def spell_reference(asked: Named | Local) -> str:
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
        if asked.identity != image.identity:
            raise EngineError(
                f"image {asked.identity}: expected this id, found {image.identity}; use that id"
            )
        return ""
    if not asked.digest:
        return find_pushed_digest(asked, image)
    if asked.digest not in [name.partition("@")[2] for name in image.digests]:
        raise EngineError(
            f"image {spell_reference(asked)}: expected this digest, found an image with "
            f"{', '.join(image.digests) or 'none'}; remove it and pull again"
        )
    return asked.digest


def find_pushed_digest(asked: Named, image: HostImage) -> str:
    """Return the digest of an image in the repository by which it was asked for; "" for none."""
    is_built_here = asked.repository.startswith(f"{_BUILT_HERE}/")
    return "" if is_built_here else image.find_digest(asked.repository)


def _short(text: str) -> str:
    """Return what engines show of a hash; nothing of what is none."""
    match = _HASH.fullmatch(text)
    return match["hex"][:_SHORT] if match else ""
