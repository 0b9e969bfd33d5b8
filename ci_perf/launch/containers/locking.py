"""Lock what is installed into an image, by uv: exact versions with hashes, and never torch."""

import importlib.util
import os
import re
import shutil
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ci_perf.errors import CiPerfError, UsageError
from ci_perf.system import files, processes
from ci_perf.system.processes import Completed

# The oldest Python that ci-perf runs on: what is locked for it is locked for all later ones too.
OLDEST_PYTHON = "3.11"

# A marker that no Python fulfils, so torch is asked for by nobody, and what only torch needs (the
# libraries of CUDA, triton) by nobody either: the base image has them, in builds that fit.
_NO_TORCH = "torch ; python_version < '0'\n"

# torch as a requirement asks for it: alone, with extras, a version, an address or a marker.
_TORCH = re.compile(r"\s*torch\s*($|[\[<>=!~;@,#])", re.IGNORECASE)

# All indexes may be slow, and a resolution from nothing asks for hundreds of files.
_ANSWER_S = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is to be locked: requirements files or pyproject.toml files, and within which bounds."""

    sources: Sequence[Path]
    extras: Sequence[str] = ()
    groups: Sequence[str] = ()
    constraints: Sequence[Path] = ()
    python_version: str = OLDEST_PYTHON


def lock(request: Request, output: Path, *, header: str) -> None:
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


def asks_for_torch(request: Request) -> bool:
    """Whether torch is named itself, which no lock of ours will do; of files that uv could read."""
    return any(_TORCH.match(one) for source in request.sources for one in _asked(source, request))


def _asked(source: Path, request: Request) -> Iterator[str]:
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
        yield from (one for one in known.get(group, ()) if isinstance(one, str))


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


def _resolve(request: Request, draft: Path, *, header: str) -> None:
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


def _bounds(request: Request) -> list[str]:
    return [
        *[word for extra in request.extras for word in ("--extra", extra)],
        *[word for group in request.groups for word in ("--group", group)],
        *[word for path in request.constraints for word in ("--constraint", str(path))],
    ]
