"""Pin an image by its digest in suite.toml, and what is installed into one by a lock with hashes.

In suite.toml one line is edited, as a person would, and the result is read again: where it says
anything but the same with another image, it is refused. So comments and spacing stay. The lock is
made by uv, and never holds torch.
"""

import importlib.util
import os
import re
import shutil
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ci_perf.errors import CiPerfError, EngineError, UsageError
from ci_perf.launch.containers import images
from ci_perf.launch.containers.engine import Engine
from ci_perf.launch.containers.images import HostImage
from ci_perf.model.container import Local, Named
from ci_perf.system import files, processes
from ci_perf.system.processes import Completed

# What is taken for one of these and is none, in a text of several lines, is found out afterwards.
_TABLE = re.compile(r"[ \t]*\[[ \t]*container[ \t]*\][ \t]*(#.*)?")
_OTHER_TABLE = re.compile(r"[ \t]*\[")
_KEY = re.compile(r"""^(?P<before>[ \t]*image[ \t]*=[ \t]*)("[^"\n]*"|'[^'\n]*')""")

# The oldest Python that ci-perf runs on: what is locked for it is locked for all later ones too.
OLDEST_PYTHON = "3.11"

# A marker that no Python fulfils, so torch is asked for by nobody, and what only torch needs (the
# libraries of CUDA, triton) by nobody either: the base image has them, in builds that fit.
_NO_TORCH = "torch ; python_version < '0'\n"

# torch as a requirement asks for it: alone, with extras, a version, an address or a marker.
_TORCH = re.compile(r"\s*torch\s*($|[\[<>=!~;@,#])", re.IGNORECASE)

# All indexes may be slow, and a resolution from nothing asks for hundreds of files.
_ANSWER_S = 600.0


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
    image = _find_image(engine, asked, ask_registry=ask_registry, say=say)
    if isinstance(asked, Named):
        for digest in (asked.digest,) if asked.digest else images.pushed(asked, image):
            _confirm(engine, asked, digest)
            return f"{asked.name}{_tag(asked)}@{digest}"
    if allow_local:
        return image.identity
    raise UsageError(
        f"image {reference}: expected one that a registry has, found one without a digest, which "
        "was never pushed; push it and pin it again, or take its id, which means something only on "
        f"this host, with --local: {image.identity}"
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


def _find_image(
    engine: Engine, asked: Named | Local, *, ask_registry: bool, say: Callable[[str], None]
) -> HostImage:
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
    setting = f'image = "{reference}"'
    place = next((n for n, line in enumerate(lines) if _TABLE.fullmatch(line.rstrip("\r"))), None)
    if place is None:
        # A blank line before a table, and a line feed after the last one.
        before = [] if not text else [end] if lines[-1] == "" else [lines[-1] + end, end]
        return "\n".join([*lines[:-1], *before, f"[container]{end}", setting + end, ""])
    if (number := _key(lines, place)) is None:
        lines.insert(place + 1, setting + end)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class LockRequest:
    """What is to be locked: requirements files or pyproject.toml files, and within which bounds."""

    sources: Sequence[Path]
    extras: Sequence[str] = ()
    groups: Sequence[str] = ()
    constraints: Sequence[Path] = ()
    python_version: str = OLDEST_PYTHON


def lock_requirements(request: LockRequest, output: Path, *, header: str) -> None:
    """Write the lock of a request to `output`; versions that it names already are kept.

    `header` is the command that its first lines tell people to repeat. Raises UsageError: no uv,
    or a request that nothing fulfils; CannotWriteError.
    """
    with tempfile.TemporaryDirectory(prefix="ci-perf-lock-") as scratch:
        draft = Path(scratch) / "lock.txt"
        if not files.is_missing(output):
            files.write_text(draft, files.read_text(output))
        _resolve(request, draft, header=header)
        files.make_folder(output.parent)
        files.write_text(output, files.read_text(draft))


def asks_for_torch(request: LockRequest) -> bool:
    """Whether torch is named itself, which no lock of ours will do; of files that uv could read."""
    return any(_TORCH.match(line) for source in request.sources for line in _asked(source, request))


def _asked(source: Path, request: LockRequest) -> Iterator[str]:
    """Yield the requirements of a file, one by one; comments and options among them do no harm."""
    text = files.read_text(source)
    if source.suffix != ".toml":
        yield from text.splitlines()
        return
    told = tomllib.loads(text)
    project = told.get("project", {})
    yield from project.get("dependencies", ())
    for extra in request.extras:
        yield from project.get("optional-dependencies", {}).get(extra, ())
    yield from _of_groups(told.get("dependency-groups", {}), request.groups)


def _of_groups(known: Mapping[str, Sequence[object]], groups: Sequence[str]) -> Iterator[str]:
    """Yield the requirements of groups; PEP 735 lets one include others, which uv has resolved."""
    for group in groups:
        yield from (
            requirement for requirement in known.get(group, ()) if isinstance(requirement, str)
        )


def default_output(source: Path) -> Path:
    """Return where the lock of a requirements file is looked for. Raises UsageError: in itself."""
    if source.suffix != ".in":
        raise UsageError(
            f"{source}: expected a name that ends in .in, or --output FILE, found neither; say "
            "where the lock goes"
        )
    return source.with_suffix(".txt")


def uv(path: str | None, *, has_module: bool) -> list[str]:
    """Return how uv is called: our Python's, else the program on `path`. Raises UsageError."""
    if has_module:
        return [sys.executable, "-P", "-m", "uv"]
    program = shutil.which("uv", path=path)
    if program is None:
        raise UsageError(
            "uv: expected its program on the PATH or its package in our Python, found neither; "
            "install it (`pip install uv`), then lock again"
        )
    return [program]


def _resolve(request: LockRequest, draft: Path, *, header: str) -> None:
    overrides = draft.with_name("overrides.txt")
    files.write_text(overrides, _NO_TORCH)
    answer = _ask(
        [
            *["pip", "compile", "--quiet", "--universal", "--generate-hashes"],
            # No code of a package runs here, and none in a build: what has no wheel is refused.
            *["--only-binary", ":all:"],
            # Ours will do to look with, whatever Python is looked for: none is downloaded for it.
            *["--python", sys.executable, "--no-python-downloads"],
            # An address may hold a password, and is right in one place only.
            *["--no-emit-index-url", "--no-emit-find-links"],
            *["--overrides", str(overrides), "--custom-compile-command", header],
            *["--python-version", request.python_version, "--output-file", str(draft)],
            *_bounds(request),
            *["--", *map(str, request.sources)],
        ]
    )
    if answer.code != 0:
        raise UsageError(
            f"{', '.join(map(str, request.sources))}: expected requirements that can be locked, "
            "found what uv says below; change them, or the constraints, and lock again",
            output=answer.err,
        )


def _ask(arguments: Sequence[str]) -> Completed:
    program = uv(os.environ.get("PATH"), has_module=importlib.util.find_spec("uv") is not None)
    try:
        return processes.capture([*program, *arguments], timeout_s=_ANSWER_S)
    except TimeoutError:
        raise CiPerfError(
            f"uv: expected an answer within {_ANSWER_S:g} s, found none; is the index reachable?"
        ) from None
    except OSError as error:
        raise UsageError(
            f"uv: expected a program that can be started, found {error.strerror}; install it anew"
        ) from None


def _bounds(request: LockRequest) -> list[str]:
    return [
        *[word for extra in request.extras for word in ("--extra", extra)],
        *[word for group in request.groups for word in ("--group", group)],
        *[word for path in request.constraints for word in ("--constraint", str(path))],
    ]
