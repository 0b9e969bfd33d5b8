"""What an engine says when it refuses, in one sentence with the next step. Pure."""

import re
from typing import NamedTuple

from ci_perf.model.container import EngineName


class _Pattern(NamedTuple):
    """Words of engines, what they mean, and the next step."""

    pattern: str
    meaning: str
    next_step: str


# The first that matches counts: a daemon that does not answer before an image that it cannot have,
# a full disk before the mount that it has broken. Docker 20.10 and 28.2 and Podman 4.3 say so; of
# Docker 29 and the hooks of NVIDIA's toolkit the words were read in their issues.
_PATTERNS = (
    _Pattern(
        r"permission denied while trying to connect to the docker",
        "the daemon does not let this user in",
        "let the runner's user in (`sudo usermod -aG docker USER`, then log in again: this group "
        "is as good as root), or use rootless docker or podman",
    ),
    _Pattern(
        r"cannot connect to (the docker daemon|podman)|failed to connect to the docker api"
        r"|unknown server OS|unable to resolve docker endpoint|error during connect"
        r"|client version \S+ is too (new|old)",
        "expected a running daemon, found none that answers",
        "start it (`sudo systemctl start docker`), or correct or unset DOCKER_HOST and "
        "DOCKER_CONTEXT (`docker context ls`)",
    ),
    _Pattern(
        r"no space left on device|disk quota exceeded",
        "the disk of the engine is full",
        "make room where it keeps images (`{engine} system df` says for what, `{engine} system "
        "prune` removes what nobody uses)",
    ),
    _Pattern(
        r"nvidia-container-(cli|runtime)|could not select device driver|nvidia\.com/gpu"
        r"|CDI (device|host device)|vendor from CDI|runtime .*\bnvidia\b",
        "the engine gives this container no GPU",
        "`nvidia-smi` must work on this host; then install the NVIDIA Container Toolkit and tell "
        "the engine of it: `sudo nvidia-ctk runtime configure --runtime=docker` and a restart of "
        "the daemon, or for podman and CDI `sudo nvidia-ctk cdi generate "
        "--output=/etc/cdi/nvidia.yaml`",
    ),
    _Pattern(
        r"no such image|image not known|manifest unknown|manifest for \S+ not found"
        r"|repository .* not found|pull access denied|requested access to the resource is denied"
        r"|unauthorized|authentication required|no basic auth credentials",
        "expected the image, found none",
        "compare its name and digest with the registry (`ci-perf pin` writes those of a tag), "
        "`{engine} login REGISTRY` as the user who runs ci-perf, then `{engine} pull` it",
    ),
    _Pattern(
        r"minimum memory limit allowed|unable to set memory limit",
        "the container's memory limit is smaller than a container needs",
        "raise `memory` in [container] of suite.toml",
    ),
)

# Long enough for a path and a reason, short enough for one line of a report.
_MAX_CHARS = 300

# Lines that say nothing of what went wrong: progress, warnings, and where help is.
_NOISE = re.compile(
    r"^$|^See '|^Run '|^Usage: |^WARNING: |level=(warning|info|debug)|^Trying to pull |^Copying "
    r"|^Getting image |^Writing manifest|^Storing signatures|^Using default tag"
)
# What stands before the reason: the program, and its parts that called each other.
_PREFIXES = re.compile(
    r"^(docker: |podman: |Error response from daemon: |Error: |failed to create task for "
    r"container: |failed to create shim task: |OCI runtime (create failed|error): "
    r"|unable to start container \"?[0-9a-f]{64}\"?: |(runc|crun)( create failed)?: "
    r"|unable to start container process: )+"
)
# What follows the reason: containerd's and podman's class of the error, which repeats it.
_SUFFIXES = re.compile(r"(: unknown|: OCI permission denied|: OCI runtime attempted to .*)?\.?$")


def absent(engine: EngineName) -> str:
    """Say that the program of an engine is not there."""
    return (
        f"{engine}: expected its program on the PATH, found none; install it (docs/containers.md), "
        "or measure without a container: `--runner local`"
    )


def explain(engine: EngineName, stage: str, said: str) -> str:
    """Say why a command of the engine failed; `said` is what it wrote to stderr.

    Of words that no pattern matches, the last line that says something is passed on.
    """
    lines = [text for line in said.splitlines() if not _NOISE.search(text := line.strip())]
    for known in _PATTERNS:
        for line in reversed(lines):
            if re.search(known.pattern, line, re.IGNORECASE):
                then = known.next_step.format(engine=engine)
                return f"`{engine} {stage}`: {known.meaning}: {_reason(line)}; {then}"
    last = _reason(lines[-1]) if lines else "it said nothing"
    return f"`{engine} {stage}` failed: {last}; {further(engine)}"


def further(engine: EngineName) -> str:
    """Name the command that may say more."""
    return f"`ci-perf doctor --runner {engine}` looks further"


def short(words: str) -> str:
    """Put foreign words in one line of bounded length; of a long one, the end says more."""
    line = " ".join(words.split())
    return line if len(line) <= _MAX_CHARS else f"... {line[-_MAX_CHARS:]}"


def _reason(line: str) -> str:
    return short(_SUFFIXES.sub("", _PREFIXES.sub("", line), count=1)) or line
