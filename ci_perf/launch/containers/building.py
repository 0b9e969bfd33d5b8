"""Build an image, and say by labels what it was built from."""

import hashlib
import os
import re
import subprocess
import tempfile
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ci_perf.errors import EngineError, InvalidFileError, UsageError
from ci_perf.launch.containers import build_errors, images
from ci_perf.launch.containers.engine import Engine
from ci_perf.model.container import Local, Named
from ci_perf.model.run import UNKNOWN_COMMIT
from ci_perf.system import files, git
from ci_perf.version import __version__

IGNORE_FILE = ".dockerignore"

# Where the lock lies that docker/Dockerfile installs.
LOCK = Path("requirements/container.txt")
BASE_ARGUMENT = "BASE_IMAGE"

# These say from where files are taken, and not which: the lock says that. An address may also hold
# a password, which no label may tell.
_ONLY_WAYS = ("PIP_INDEX_URL",)
_DEFAULT_BASE = re.compile(rf"^ARG[ \t]+{BASE_ARGUMENT}=(\S+)[ \t]*$", re.MULTILINE | re.IGNORECASE)

# The part of a hash that tells images apart in a list.
_SHORT = 12

# pip and apt-get say why they fail within so many lines of the end, and BuildKit repeats them.
_LAST_LINES = 200
_FROM = re.compile(
    r"FROM\s+(?:--\S+\s+)*(?P<image>\S+)(?:\s+AS\s+(?P<stage>\S+))?\s*", re.IGNORECASE
)

_EMPTY = "scratch"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """What an image is made of. ``base`` empty is the one that the Dockerfile names itself."""

    context: Path
    dockerfile: Path
    base: str = ""
    arguments: Mapping[str, str] = field(default_factory=dict)

    @property
    def lock(self) -> Path | None:
        """Return the lock that goes in, where there is one at the place of ours."""
        lock = self.context / LOCK
        return None if files.is_missing(lock) else lock


def inputs(recipe: Recipe) -> str:
    """Return the hash of all that goes in, as "sha256:...": equal inputs, equal hash, anywhere.

    These are, in this order: the base as it was asked for, the arguments of the build less those
    that only say from where files are taken, the text of the Dockerfile, and of each file that the
    engine is sent its path, whether it is executable, and its content; of a link, where it leads.
    Not in it: times, owners, empty folders, and what the base's own distribution installs.
    """
    told = {name: text for name, text in recipe.arguments.items() if name not in _ONLY_WAYS}
    seen = hashlib.sha256()
    _add(seen, b"base", recipe.base.encode())
    for name, text in sorted(told.items()):
        _add(seen, b"argument", name.encode(), text.encode())
    _add(seen, b"dockerfile", _content(recipe.dockerfile))
    for path in visible_files(recipe.context):
        _add(seen, *_described(recipe.context, path))
    return f"sha256:{seen.hexdigest()}"


def check_ignored(recipe: Recipe) -> None:
    """Raise UsageError for a list of what is left out that only some engines obey."""
    other = recipe.dockerfile.with_name(f"{recipe.dockerfile.name}{IGNORE_FILE}")
    if not files.is_missing(other):
        raise UsageError(
            f"{other}: expected no such file, for some engines obey it and some do not; say what "
            f"is left out in {recipe.context / IGNORE_FILE}"
        )


def check_base(recipe: Recipe) -> None:
    """Raise UsageError when a base may be another one tomorrow.

    Looks at the argument BASE_IMAGE, and at each FROM that names an image itself.
    """
    base = _base(recipe)
    if isinstance(base, Named):
        _check_digest(base, _asked_base(recipe) or base.name)
    for image in _named_images(_content(recipe.dockerfile).decode(errors="replace")):
        named = images.parse(image)
        if isinstance(named, Named):
            _check_digest(named, image)


def labels(recipe: Recipe, inputs_hash: str) -> dict[str, str]:
    """Return what an image is told of itself; what is not known is left out."""
    base = _base(recipe)
    source = git.source(recipe.context)
    known = {
        "org.opencontainers.image.version": __version__,
        "org.opencontainers.image.revision": _revision(source.commit, is_dirty=source.dirty),
        "org.opencontainers.image.base.name": _tagged(base) if isinstance(base, Named) else "",
        "org.opencontainers.image.base.digest": base.digest if isinstance(base, Named) else "",
        images.INPUTS_LABEL: inputs_hash,
        "dev.ci_perf.lock": _lock_hash(recipe.lock),
    }
    return {label: text for label, text in known.items() if text}


def default_tag(inputs_hash: str) -> str:
    """Return a tag that tells one recipe from another."""
    return f"ci-perf:{inputs_hash.removeprefix('sha256:')[:_SHORT]}"


def build(
    engine: Engine,
    recipe: Recipe,
    *,
    tag: str,
    labels: Mapping[str, str],
    network: str,
    hear: Callable[[str], None],
) -> str:
    """Build, and return the config id: "sha256:..." of the image, which can mean no other one.

    `hear` is told each line of what the engine says meanwhile. Raises EngineError.
    """
    with tempfile.TemporaryDirectory(prefix="ci-perf-build-") as scratch:
        answer = Path(scratch) / "id"
        told = ["--tag", tag, "--iidfile", str(answer), "--file", str(recipe.dockerfile)]
        told += ["--force-rm"]  # a build that fails leaves no container of its last step
        told += ["--network", network] if network else []
        told += _ignored(engine, recipe)
        told += _pairs("--build-arg", _arguments(recipe)) + _pairs("--label", labels)
        _run(engine, engine.command("build", *told, "--", str(recipe.context)), hear)
        return _id(files.read_text(answer).strip())


def _check_digest(base: Named, spelled: str) -> None:
    if not base.digest:
        raise UsageError(
            f"base image {spelled}: expected one with its digest (NAME@sha256:...), found none; "
            "see which it has (`ci-perf image pin` asks), or build with --allow-unpinned"
        )


def _named_images(dockerfile: str) -> Iterator[str]:
    """Yield what FROM names that is neither a stage of this Dockerfile nor an argument."""
    stages = {_EMPTY}
    for line in dockerfile.replace("\\\n", " ").splitlines():
        if match := _FROM.fullmatch(line.strip()):
            if match["image"].lower() not in stages and "$" not in match["image"]:
                yield match["image"]
            stages.add((match["stage"] or _EMPTY).lower())


def _ignored(engine: Engine, recipe: Recipe) -> list[str]:
    """Hold podman to the file that docker obeys: it would prefer another one."""
    file = recipe.context / IGNORE_FILE
    return ["--ignorefile", str(file)] if engine.name == "podman" and file.exists() else []


def _arguments(recipe: Recipe) -> dict[str, str]:
    base = {BASE_ARGUMENT: recipe.base} if recipe.base else {}
    return {**recipe.arguments, **base}


def _pairs(option: str, pairs: Mapping[str, str]) -> list[str]:
    return [word for name, text in pairs.items() for word in (option, f"{name}={text}")]


def _run(engine: Engine, command: Sequence[str], hear: Callable[[str], None]) -> None:
    """Run a build for as long as it takes: a base is gigabytes, and a person can press Ctrl-C."""
    heard: deque[str] = deque(maxlen=_LAST_LINES)
    with subprocess.Popen(
        command,
        env=dict(engine.environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            heard.append(build_errors.plain(line))
            hear(heard[-1])
    if process.returncode != 0:
        raise EngineError(build_errors.explained(engine.name, process.returncode, heard))


def _add(seen: "hashlib._Hash", *parts: bytes) -> None:
    """Add parts with their lengths, so that no two lists of parts read the same."""
    for part in parts:
        seen.update(f"{len(part)}:".encode())
        seen.update(part)
    seen.update(b"\n")


def _described(root: Path, path: Path) -> list[bytes]:
    here = root / path
    if here.is_symlink():
        return [b"link", os.fsencode(path), os.fsencode(here.readlink())]
    content = hashlib.sha256(_content(here)).digest()
    kind = b"program" if here.stat().st_mode & 0o100 else b"file"
    return [kind, os.fsencode(path), content]


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InvalidFileError(f"{path}: cannot be read: {error.strerror}") from None


def _base(recipe: Recipe) -> Named | Local | None:
    """Return the base that is meant; `None` where the Dockerfile leaves it to others to say."""
    default = _DEFAULT_BASE.search(_content(recipe.dockerfile).decode(errors="replace"))
    asked = _asked_base(recipe) or (default[1] if default else "")
    return images.parse(asked) if asked else None


def _asked_base(recipe: Recipe) -> str:
    """Return the base that whoever builds asks for; there are two ways to say it."""
    return recipe.base or recipe.arguments.get(BASE_ARGUMENT, "")


def _tagged(base: Named) -> str:
    return f"{base.name}:{base.tag}" if base.tag else base.name


def _revision(commit: str, *, is_dirty: bool) -> str:
    if commit == UNKNOWN_COMMIT:
        return ""
    return f"{commit}-dirty" if is_dirty else commit


def _lock_hash(lock: Path | None) -> str:
    return f"sha256:{hashlib.sha256(_content(lock)).hexdigest()}" if lock else ""


def _id(written: str) -> str:
    """Spell the id in full: podman leaves the name of the hash out."""
    return written if written.startswith("sha256:") else f"sha256:{written}"


@dataclass(frozen=True, slots=True)
class _Pattern:
    words: str
    text: "re.Pattern[str]"
    is_exception: bool


def visible_files(context: Path) -> list[Path]:
    """Return every file and link that the engine is sent, relative to `context`, sorted.

    The rules are Docker's: the last pattern that fits a path, or a folder above it, decides. An
    exception opens an ignored folder only when it spells that folder's name. Folders are sent too,
    but count for nothing by themselves.
    """
    return sorted(_visible_below(context, Path(), _patterns(context / IGNORE_FILE), frozenset()))


def _visible_below(
    context: Path, folder: Path, patterns: list[_Pattern], fitting: frozenset[int]
) -> Iterator[Path]:
    """Walk one folder; `fitting` says which patterns fit it or a folder above it."""
    for entry in _entries(context / folder):
        path = folder / entry.name
        fits = fitting | {
            n for n, pattern in enumerate(patterns) if pattern.text.fullmatch(str(path))
        }
        ignored = bool(fits) and not patterns[max(fits)].is_exception
        if entry.is_dir(follow_symlinks=False):
            if not ignored or _may_be_opened(path, patterns):
                yield from _visible_below(context, path, patterns, fits)
        elif not ignored:
            yield path


def _entries(folder: Path) -> list["os.DirEntry[str]"]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError as error:
        raise InvalidFileError(f"{folder}: cannot be read: {error.strerror}") from None


def _may_be_opened(folder: Path, patterns: list[_Pattern]) -> bool:
    return any(
        pattern.is_exception and f"{pattern.words}/".startswith(f"{folder}/")
        for pattern in patterns
    )


def _patterns(file: Path) -> list[_Pattern]:
    if files.is_missing(file):
        return []
    lines = [line.strip() for line in files.read_text(file).removeprefix("\ufeff").splitlines()]
    return [_pattern(line) for line in lines if line and not line.startswith("#")]


def _pattern(line: str) -> _Pattern:
    is_exception = line.startswith("!")
    path = os.path.normpath(line.removeprefix("!").strip()).lstrip("/")
    return _Pattern(path, re.compile(_expression(path)), is_exception)


def _expression(pattern: str) -> str:
    """Translate: `*` and `?` stop at a slash, `**` is any number of folders, `[...]` a choice."""
    parts = re.findall(r"\*\*/?|\*|\?|\[\^?[^\]]+\]|\\.|.", pattern, re.DOTALL)
    return "".join(map(_word, parts))


def _word(word: str) -> str:
    if word.startswith("**"):
        return "(?:.*/)?" if word.endswith("/") else ".*"
    if word == "*":
        return "[^/]*"
    if word == "?":
        return "[^/]"
    if len(word) > 1 and word.startswith("["):
        return word
    return re.escape(word[-1])
