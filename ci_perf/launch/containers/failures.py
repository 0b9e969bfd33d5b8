"""What an engine says when it refuses, in one sentence with the next step. Pure."""

import re
from collections.abc import Iterable

from ci_perf.launch.containers.refusals import KNOWN, Refusal
from ci_perf.model.container import EngineName

# Long enough for a path and a reason, short enough for one line of a report.
_MAX_CHARS = 300

# Lines that say nothing of what went wrong: progress, warnings, and where help is.
_NOISE = re.compile(
    r"^$|^See '|^Run '|^Usage: |^WARNING: |level=(warning|info|debug)|^Trying to pull |^Copying "
    r"|^Getting image |^Writing manifest|^Storing signatures|^Using default tag"
)
# What stands before the reason: who speaks, and which of its parts called which.
_PREFIXES = re.compile(
    r"^(docker: |podman: |Error response from daemon: |Error: |failed to create task for "
    r"container: |failed to create shim task: |OCI runtime (create failed|error): "
    r"|unable to start container \"?[0-9a-f]{64}\"?: |(runc|crun)( create failed)?: "
    r"|unable to start container process: |failed to solve( with frontend [\w.]+)?: "
    r"|failed to create LLB definition: )+"
)
# What stands behind it: containerd's and podman's class of the error, which repeats it.
_SUFFIXES = re.compile(r"(: unknown|: OCI permission denied|: OCI runtime attempted to .*)?\.?$")


def absent(engine: EngineName) -> str:
    """Say that the program of an engine is not there."""
    return (
        f"{engine}: expected its program on the PATH, found none; install it (docs/containers.md), "
        "or measure without a container: `--runner local`"
    )


def explained(engine: EngineName, stage: str, said: str) -> str:
    """Say why a command of the engine failed; `said` is what it wrote to stderr.

    Words that nobody knows are passed on: the last line that says something, shortened.
    """
    lines = _meaningful(said)
    return (
        known(engine, stage, "\n".join(lines))
        or f"`{engine} {stage}` failed: {_last(lines)}; {further(engine)}"
    )


def reason(said: str) -> str:
    """Return the last line that says something, without who says it."""
    return _last(_meaningful(said))


def further(engine: EngineName) -> str:
    """Say who knows more, where we do not."""
    return f"`ci-perf doctor --runner {engine}` looks further"


def known(engine: EngineName, stage: str, said: str) -> str | None:
    """Say what these words mean, and what to do; `None` when nobody knows them."""
    return next((_sentence(engine, stage, one, found) for one, found in _matches(said)), None)


def short(words: str) -> str:
    """Put foreign words in one line of bounded length; of a long one, the end says more."""
    line = " ".join(words.split())
    return line if len(line) <= _MAX_CHARS else f"... {line[-_MAX_CHARS:]}"


def _matches(said: str) -> Iterable[tuple[Refusal, re.Match[str]]]:
    for one in KNOWN:
        if found := one.pattern.search(said):
            yield one, found


def _sentence(engine: EngineName, stage: str, one: Refusal, found: re.Match[str]) -> str:
    words = {name: short(word or "") for name, word in found.groupdict().items()}
    words["it"] = short(next(filter(None, found.groups()), ""))
    what, then = (said.format(engine=engine, **words) for said in (one.what, one.next_step))
    # Where there was nothing to name, its place closes up.
    return f"`{engine} {stage}`: {' '.join(what.split()).rstrip(': ')}; {then}"


def _meaningful(said: str) -> list[str]:
    lines = (line.strip() for line in said.splitlines())
    return [line for line in lines if not _NOISE.search(line)]


def _last(lines: list[str]) -> str:
    if not lines:
        return "it said nothing"
    return short(_SUFFIXES.sub("", _PREFIXES.sub("", lines[-1]), count=1)) or lines[-1]
