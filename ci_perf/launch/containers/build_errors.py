"""Why a build has failed, in one sentence with the next step, from what it said. Pure."""

import re
from collections.abc import Sequence

from ci_perf.launch.containers import engine_errors
from ci_perf.launch.containers.engine_errors import ErrorPattern
from ci_perf.model.container import EngineName

# Colours, and whatever else moves a terminal: ECMA-48, "Control sequences".
_CONTROL = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\r")
# A step that has ended with an exit code, as the engines' builders say it: docker's own, BuildKit
# (the newer form was only read), podman.
_STEP_FAILED = re.compile(
    r"returned a non-zero code: (\d+)$|^executor failed running .*: exit code: (\d+)$"
    r"|did not complete successfully: exit code: (\d+)$|while running runtime: exit status (\d+)$"
)
# What docker/base.py says of a base, and docker/Dockerfile before it tries apt-get; BuildKit puts
# number and time before each.
_OUR_OWN = re.compile(r"(?:^|\s)base image: (expected .+)$", re.MULTILINE)
_BY_APT = re.compile(r"(?:^|\s)so they are installed by apt-get$", re.MULTILINE)
_NO_APT = re.compile(r"apt-get: (command )?not found", re.MULTILINE)
# Where a step begins, said by docker's own builder and by podman.
_STEP_BEGINS = re.compile(r"^STEP \d+/\d+ ?:", re.IGNORECASE)
# Several steps of BuildKit run and speak at once: each line says whose it is.
_STEP_OF_BUILDKIT = re.compile(r"^(#\d+ )ERROR: ")
# Where an engine begins to speak for itself.
_ENGINE_SPEAKS = re.compile(r"^(Error|ERROR)\b")
# Its last word is near the end: newer builders say after it where there is more to read.
_END = 3
_RUNTIME = re.compile(r'level=error msg="exit status \d+"')

_ANOTHER_BASE = "name another base (`--base NAME@sha256:DIGEST`)"
_NO_COMPILERS = (
    f"a base needs compilers, or apt-get to install them, and this one has neither; {_ANOTHER_BASE}"
)


def _refusal(pattern: str, what: str, next_step: str) -> ErrorPattern:
    return ErrorPattern(pattern=re.compile(pattern, re.IGNORECASE), what=what, next_step=next_step)


# What programs of a step are known to say: pip, apt-get, and the kernel.
_STEPS = (
    _refusal(
        r"no space left on device|disk quota exceeded",
        "the disk of the engine is full",
        "make room where it keeps images: `{engine} system df` says for what",
    ),
    _refusal(
        r"CERTIFICATE_VERIFY_FAILED|certificate verification failed",
        "the certificate of the package index is not believed",
        "make a base that knows your authority's certificate (docs/containers.md, mirrors)",
    ),
    _refusal(
        r"do not match the hashes",
        "the package index has sent another file than the one that was locked",
        "compare index or mirror with the lock; `ci-perf image lock` makes it anew",
    ),
    _refusal(
        r"hashes are required in --require-hashes mode|must have their versions pinned",
        "the lock has a requirement without version or hash",
        "make it by `ci-perf image lock`",
    ),
    _refusal(
        r"temporary failure (in name )?resolv|could not resolve|name or service not known"
        r"|failed to establish a new connection|connection (timed out|refused|reset)|unable to "
        r"connect to|network is unreachable|read timed out",
        "a package index could not be reached",
        "look at network and proxy, or name a mirror: `--build-arg PIP_INDEX_URL=...`; `--network "
        "host` is the network of this host",
    ),
    _refusal(
        r"no matching distribution found for (?P<what>\S+)",
        "the package index has no {what} for the Python of this base",
        "see that base and lock are for the same Python (`ci-perf image lock --python-version`)",
    ),
)


def plain(line: str) -> str:
    """Return a line of a build without its end, and without what only a terminal understands."""
    return _CONTROL.sub("", line.rstrip("\r\n"))


def explained(engine: EngineName, code: int, lines: Sequence[str]) -> str:
    """Say why a build has failed; `lines` are the last that it wrote, without colours."""
    said = [line for line in lines if line.strip() and not _RUNTIME.search(line)]
    step = next(filter(None, map(_STEP_FAILED.search, reversed(said[-_END:]))), None)
    if step is None:
        return _of_engine(engine, "\n".join(_from_last(_ENGINE_SPEAKS, said) or said[-1:]))
    text = "\n".join(_last_step(said))
    number = next(filter(None, step.groups()), str(code))
    why = _of_base(text) or _of_step(engine, text)
    return f"`{engine} build`: " + (
        why or f"a step failed (exit code {number}); its own words, above, say why"
    )


def _of_engine(engine: EngineName, said: str) -> str:
    return (
        engine_errors.known(engine, "build", said)
        or f"`{engine} build` failed: {engine_errors.reason(said)}; correct what this names"
    )


def _of_base(text: str) -> str:
    """Repeat what our own Dockerfile says of a base: its last word, if apt-get did not help."""
    tries = list(_BY_APT.finditer(text))
    if tries and _NO_APT.search(text):
        return _NO_COMPILERS
    # What was missing before the last try, apt-get may have brought.
    reasons = _OUR_OWN.findall(text[tries[-1].end() :] if tries else text)
    if not reasons:
        return ""
    return f"base image: {reasons[-1]}; {_ANOTHER_BASE}, or correct the lock"


def _of_step(engine: EngineName, text: str) -> str:
    for step in _STEPS:
        if match := step.pattern.search(text):
            words = {
                name: engine_errors.short(word or "") for name, word in match.groupdict().items()
            }
            return f"{step.what.format(**words)}; {step.next_step.format(engine=engine)}"
    return ""


def _last_step(lines: Sequence[str]) -> Sequence[str]:
    """Return what the last step said: earlier ones may have met trouble, and got over it."""
    failed = [match[1] for match in map(_STEP_OF_BUILDKIT.search, lines) if match]
    if failed:
        return [line for line in lines if line.startswith(failed[-1])]
    return _from_last(_STEP_BEGINS, lines) or lines


def _from_last(beginning: re.Pattern[str], lines: Sequence[str]) -> Sequence[str]:
    """Return the lines from the last one that begins so; none where there is no such line."""
    starts = [number for number, line in enumerate(lines) if beginning.search(line)]
    return lines[starts[-1] :] if starts else []
