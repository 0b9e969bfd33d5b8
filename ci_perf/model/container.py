"""The container in which a suite is measured: what is asked for, what it was, how images are named.

The grammar of references is that of the engines, but stricter where a reference could mean two
things: a name is written in small letters everywhere, and nothing of it can be taken for a switch.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

import msgspec

from ci_perf.model.base import CPU_LIST, CpuList, Struct, Text

EngineName = Literal["docker", "podman"]
# As the engines spell it: a whole number and a binary unit.
_SIZE = r"^[1-9][0-9]{0,6}[kmg](?!\n)$"
_SIZE_OR_EMPTY = r"^([1-9][0-9]{0,6}[kmg])?(?!\n)$"
Size = Annotated[str, msgspec.Meta(max_length=10, pattern=_SIZE)]
SizeOrEmpty = Annotated[str, msgspec.Meta(max_length=10, pattern=_SIZE_OR_EMPTY)]
Pids = Annotated[int, msgspec.Meta(ge=16, le=4_194_304)]
# What a pattern asks for, for people: nobody reads the pattern itself.
IN_WORDS: Mapping[str, str] = {
    _SIZE: "a size such as 32g or 512m",
    _SIZE_OR_EMPTY: "a size such as 32g or 512m",
    CPU_LIST: "numbers of cores, such as 0-3,8",
}
MAX_REFERENCE_CHARS = 400
# What an image is called: NAME, NAME:TAG, NAME@sha256:DIGEST, or sha256:CONFIG.
Reference = Annotated[str, msgspec.Meta(max_length=MAX_REFERENCE_CHARS)]


class Container(Struct, frozen=True, kw_only=True):
    """The table [container] of suite.toml: in which image, and with how much of the machine.

    Nothing here opens a door: mounts, GPUs and the engine are chosen by whoever starts ci-perf.
    ``memory`` empty is without a limit; ``cpus`` empty is all of them.
    """

    image: Reference = ""
    memory: SizeOrEmpty = ""
    shm_size: Size = "8g"
    tmp_size: Size = "8g"
    pids: Pids = 4096
    cpus: CpuList = ""


class Image(Struct, frozen=True, kw_only=True):
    """The image that was measured in.

    ``reference`` is how it was asked for, ``digest`` that of its registry ("sha256:...", empty for
    one that was never pushed), ``config`` that of its configuration, which every engine knows.
    ``is_pinned`` says that the reference can mean no other image.
    """

    reference: Reference
    digest: Text
    config: Text
    is_pinned: bool
    engine: EngineName
    engine_version: Text


# --- what an image is called

# The engines' own limit, for the registry and the path together.
_MAX_NAME_CHARS = 255
DOCKER_HUB = "docker.io"
_OLD_DOCKER_HUB = "index.docker.io"
# Where Docker Hub keeps what is called by one word: "python" is docker.io/library/python.
_LIBRARY = "library"

_HOST = r"(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*|\[[0-9a-f:]+\]"
_REGISTRY = re.compile(rf"(?:{_HOST})(?::[0-9]{{1,5}})?")
_COMPONENT = re.compile(r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*")
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_HEX = re.compile(r"[0-9a-f]{64}")
_EXPECTED = "expected NAME:TAG, NAME@sha256:DIGEST or sha256:ID"


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """An image of a repository. ``tag`` and ``digest`` are empty where none was given.

    ``name`` is as it was written, without tag and digest; ``repository`` is the same in full:
    "python" is docker.io/library/python. ``digest`` begins with "sha256:".
    """

    name: str
    repository: str
    tag: str
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Local:
    """An image of this host, by its id there: "sha256:" and 64 digits."""

    identity: str


def parse_reference(text: str) -> Named | Local:
    """Take a reference apart. Raises ValueError that says what was expected and found."""
    if _DIGEST.fullmatch(text):
        return Local(identity=text)
    if len(text) > MAX_REFERENCE_CHARS:
        raise ValueError(f"expected at most {MAX_REFERENCE_CHARS} characters, found {len(text)}")
    before, at, digest = text.partition("@")
    if at and not _DIGEST.fullmatch(digest):
        raise ValueError(f"expected sha256: and 64 digits 0-9a-f after the @, found {digest!r}")
    name, tag = _without_tag(before)
    return Named(name=name, repository=_repository(name), tag=tag, digest=digest)


def is_under(image: Named | Local, prefix: str) -> bool:
    """Whether an image comes from `prefix`: a registry, and whole words of a path in it.

    An image that is known by its id alone comes from nowhere. Raises ValueError: no such prefix.
    """
    parts = _prefix(prefix)
    return isinstance(image, Named) and image.repository.split("/")[: len(parts)] == parts


def _without_tag(text: str) -> tuple[str, str]:
    """Tell NAME from TAG: the colon of a port stands before a slash, that of a tag does not."""
    head, slash, last = text.rpartition("/")
    word, colon, tag = last.partition(":")
    if colon and not _TAG.fullmatch(tag):
        raise ValueError(
            f"expected a tag of at most 128 letters, digits, dots, dashes and underscores, found "
            f"{tag!r}"
        )
    if not slash and word == "sha256":
        raise ValueError(f"expected sha256: and 64 digits 0-9a-f, found {text!r}")
    return f"{head}{slash}{word}", tag


def _repository(name: str) -> str:
    """Spell a name in full. Raises ValueError for what is no name."""
    registry, path = _split(name)
    _check_name(name, registry, path)
    if registry == DOCKER_HUB and len(path) == 1:
        path = [_LIBRARY, *path]
    return "/".join([registry, *path])


def _split(name: str) -> tuple[str, list[str]]:
    """Tell the registry from the path, by what engines go by: a dot, a port, or localhost."""
    first, *rest = name.split("/")
    if not rest or not _is_registry(first):
        return DOCKER_HUB, [first, *rest]
    return (DOCKER_HUB if first == _OLD_DOCKER_HUB else first), rest


def _is_registry(word: str) -> bool:
    return "." in word or ":" in word or word == "localhost"


def _check_name(name: str, registry: str, path: list[str]) -> None:
    if name != name.lower():
        raise ValueError(f"expected a name in small letters, found {name!r}")
    if not _REGISTRY.fullmatch(registry) or not all(map(_COMPONENT.fullmatch, path)):
        raise ValueError(f"{_EXPECTED}, found {name!r}")
    if len(name) > _MAX_NAME_CHARS:
        raise ValueError(f"expected a name of at most {_MAX_NAME_CHARS} characters")
    if _HEX.fullmatch(name):
        raise ValueError("expected a name, found 64 digits; an id begins with sha256:")


def _prefix(text: str) -> list[str]:
    """Spell a prefix in full. One that begins with a registry is taken at its word."""
    bare = text.rstrip("/")
    first, *path = bare.split("/")
    if ":" in (path or [""])[-1] or "@" in bare:
        raise ValueError(f"expected a registry and a path in it, without a tag, found {text!r}")
    if not _is_registry(first):
        return _repository(bare).split("/")
    _check_name(bare, first, path)
    return [DOCKER_HUB if first == _OLD_DOCKER_HUB else first, *path]
