"""What an engine says when it refuses, in one sentence with the next step. Pure.

Nearly every pattern was met with Docker 20.10 (its own command line and that of 28.2) or Podman
4.3; the tests hold these words. A comment says where the others were read.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from ci_perf.model.container import EngineName


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorPattern:
    """Words of an engine, their meaning and the next step.

    `{name}` there is a group of the pattern, and `{it}` the first one that has caught something.
    """

    pattern: re.Pattern[str]
    what: str
    next_step: str


def _pattern(pattern: str, what: str, next_step: str) -> ErrorPattern:
    return ErrorPattern(
        pattern=re.compile(pattern, re.IGNORECASE | re.MULTILINE), what=what, next_step=next_step
    )


_DOCTOR = "`ci-perf doctor --runner {engine}` looks further"
_TOOLKIT = (
    "install the NVIDIA Container Toolkit (nvidia-container-toolkit), then `sudo nvidia-ctk "
    "runtime configure --runtime=docker` and restart the daemon"
)
_CDI = "`sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml`"

_DAEMON = (
    _pattern(  # the second form: read in issues about Docker 29
        r"permission denied while trying to connect to (the Docker daemon socket|the docker API) "
        r"at (?P<socket>\S+?):?(\s|$)",
        "expected to be let in at {socket}, found permission denied",
        "let the runner's user in (`sudo usermod -aG docker USER`, then log in again: whoever is "
        "in this group is as good as root), or use rootless docker or podman",
    ),
    _pattern(  # the second form: read in issues about Docker 29; the third: podman with a service
        r"(?:Cannot connect to the Docker daemon|failed to connect to the docker API) (at \S+?)"
        r"[.;](\s|$)"
        r"|Cannot connect to Podman",
        "expected a running daemon {it}, found none that answers",
        "start it (`sudo systemctl start docker`), or point DOCKER_HOST to the one that runs",
    ),
    _pattern(  # Docker 28 says so of a daemon that does not answer, when a device is asked for
        r"unknown server OS: *$",
        "expected a running daemon, found none that answers",
        "start it (`sudo systemctl start docker`), or point DOCKER_HOST to the one that runs",
    ),
    _pattern(
        r"unable to resolve docker endpoint: (.*)|error during connect: (.*)",
        "expected DOCKER_HOST or the docker context to lead to a daemon, found: {it}",
        "correct or unset DOCKER_HOST and DOCKER_CONTEXT (`docker context ls`)",
    ),
    _pattern(
        r"client version (?P<version>[0-9.]+) is too (?P<how>new|old)",
        "the docker command and its daemon speak different languages: API {version} is too {how}",
        "bring both to versions that go together; unset DOCKER_API_VERSION",
    ),
    _pattern(
        r"no space left on device|disk quota exceeded",
        "the disk of the engine is full",
        "make room where it keeps images (`{engine} system df` says for what, `{engine} system "
        "prune` removes what nobody uses)",
    ),
    _pattern(
        r"no subuid ranges found for user (?P<user>\S+)",
        "{user} has no user ids to give to rootless containers",
        "`sudo usermod --add-subuids 100000-165535 --add-subgids 100000-165535 USER`, then "
        "`podman system migrate`",
    ),
)

_GPUS = (
    _pattern(  # the words of the real hook, from issues of NVIDIA/nvidia-docker and moby
        r"requirement error: unsatisfied condition: (?P<condition>[^,:\s]+( [^,:\s]+){0,2})",
        "the image needs a newer NVIDIA driver than this host has: {condition}",
        "update the driver, or take an image for an older CUDA",
    ),
    _pattern(
        r"device error: (?P<gpu>[^:\s]+): unknown device",
        "the NVIDIA toolkit knows no GPU {gpu}",
        "`nvidia-smi -L` lists the UUIDs of this host",
    ),
    _pattern(
        r"unresolvable CDI devices? (?P<gpu>[^\s:]+)",
        "no CDI specification knows {gpu}",
        f"write one anew (after each change of driver or GPUs): {_CDI}",
    ),
    _pattern(  # "failed to inject devices: ... CDI host device": read, NVIDIA toolkit's issue 885
        r'stat CDI host device "?(?P<gpu>[^"\s:]+)"?:',
        "a CDI specification names {gpu}, which this host does not have",
        f"write one anew: {_CDI}",
    ),
    _pattern(
        r"driver/library version mismatch",
        "the NVIDIA driver was updated while it ran: its libraries and its kernel module differ",
        "reboot this host",
    ),
    _pattern(
        r"nvml error: driver not loaded|libnvidia-ml\.so\.1: cannot open|libcuda\.so\.1: cannot",
        "the NVIDIA toolkit is there, and found no working driver",
        "`nvidia-smi` must work on this host first; `ci-perf doctor` says what is missing",
    ),
    _pattern(
        r"nvidia-container-(?:cli|runtime)(?:\.real)?: (.*?)(: unknown)?\.?$",
        "the NVIDIA toolkit refused: {it}",
        f"`nvidia-smi` must work on this host first; {_DOCTOR}",
    ),
    _pattern(  # the second form: read in an issue about Docker 29, where --gpus goes through CDI
        r'could not select device driver "(nvidia)?" with capabilities|failed to discover GPU '
        r"vendor from CDI|(unknown|invalid) runtime( specified| name)?:? nvidia",
        "this engine was not given the NVIDIA toolkit: it can pass no GPU to a container",
        _TOOLKIT,
    ),
    _pattern(
        r'OCI runtime "nvidia" not found',
        "this podman has no NVIDIA runtime, and needs none: it passes GPUs by CDI",
        f"write a CDI specification: {_CDI}",
    ),
    _pattern(
        r'could not select device driver "cdi"|nvidia\.com/gpu=\S+ is not an absolute path',
        "this docker knows no CDI, by which a GPU was asked for",
        "use docker 28.2 or newer (from 25 on with the daemon's feature `cdi`), or its NVIDIA "
        "runtime",
    ),
)

_IMAGES = (
    _pattern(
        r"unauthorized|authentication required|no basic auth credentials|pull access denied"
        r"|requested access to the resource is denied|403 \(?Forbidden",
        "the registry does not let us in, or has no such image",
        "`{engine} login REGISTRY` as the user who runs ci-perf, then pull again",
    ),
    _pattern(
        r"manifest for (\S+) not found|reading manifest (\S+ in \S+): manifest "
        r"unknown|manifest unknown|repository .* not found",
        "the registry has no such image: {it}",
        "compare tag and digest with the registry; `ci-perf pin` writes those of a tag",
    ),
    _pattern(
        r"manifest does not match provided manifest digest|manifest verification failed for digest"
        r"|(failed|unexpected) commit digest|layer verification failed|digest did not match"
        r"|does not match its digest",
        "what the registry or a proxy sent is not what the digest names",
        "pull again; if it stays so, do not use this registry: its content was changed",
    ),
    _pattern(
        r"toomanyrequests|too many requests|pull rate limit",
        "the registry answers no more for now: too many pulls",
        "`{engine} login` for a higher limit, or keep the image on this host",
    ),
    _pattern(
        r"x509: (.*?)(: unknown)?\.?$",
        "the registry's certificate is not believed: {it}",
        "let the engine know your authority's certificate (/etc/docker/certs.d, "
        "/etc/containers/certs.d)",
    ),
    _pattern(
        r"server gave HTTP response to HTTPS client",
        "the registry speaks no HTTPS",
        "name it an insecure registry in the engine's configuration, if you trust the network",
    ),
    _pattern(
        r"dial tcp:? (.*?: (?:no such host|connection refused|i/o timeout|no route to host"
        r"|network is unreachable|connect: [a-z ]+))|TLS handshake timeout|connection reset by peer"
        r"|received unexpected (HTTP status: [^:]+)"
        r"|(context deadline exceeded|Client\.Timeout exceeded)",
        "the registry could not be reached: {it}",
        "look at network, proxy and the registry's name; an image that is here needs no registry",
    ),
    _pattern(
        r"does not match the specified platform: wanted (?P<wanted>[^,\s]+), actual: (?P<has>\S+?)"
        r"\.?$",
        "the image is for {has}, and this asks for {wanted}",
        "take an image for the architecture of this host",
    ),
    _pattern(
        r"exec format error",
        "the image's programs are of another architecture than this host",
        "take an image for the architecture of this host",
    ),
    _pattern(
        r"No such image: (\S+?)\.?$|(\S+): image not known",
        "expected the image {it} on this host, found none",
        "pull it first: `{engine} pull {it}`",
    ),
    _pattern(
        r"invalid reference format|repository name .*must be lowercase",
        "the image's name is none",
        "spell it NAME@sha256:DIGEST, all in lowercase",
    ),
)

_LIMITS = (
    _pattern(
        r"(?:Minimum memory limit allowed is (\S+?)\.?$|unable to set memory limit to "
        r"(\d+ \(current usage: \d+))",
        "the container's memory limit is smaller than a container needs: {it}",
        "raise `memory` in [container] of suite.toml, or --memory",
    ),
    _pattern(
        r"requested CPUs are not available - requested (?P<asked>\S+), available: (?P<has>[\d,-]+)",
        "expected the cores {asked}, found only {has}",
        "correct `cpus` in [container] of suite.toml, or --cpus",
    ),
    _pattern(
        r"error setting rlimits?.* type (?P<type>\d+): operation not permitted"
        r"|error setting rlimit|setrlimit .*operation not permitted",
        "the engine may not raise a limit of processes (ulimit, type {type})",
        "give the daemon CAP_SYS_RESOURCE, or set limits that it may set "
        "(podman: default_ulimits in containers.conf)",
    ),
    _pattern(
        r"cgroups in hybrid mode not supported|systemd not running on this host"
        r"|cannot use systemd cgroups",
        "the engine's runtime does not go with this host's control groups",
        "boot with control groups version 2, or choose another runtime or manager (podman: "
        '`runtime = "runc"`, `cgroup_manager = "cgroupfs"` in containers.conf)',
    ),
    _pattern(
        r'error mounting "?tmpfs"? .*?data: (?P<data>\S+): invalid argument',
        "the kernel refuses a memory file system with {data}",
        "correct `tmp_size` and `shm_size` in [container] of suite.toml, or --tmp-size and "
        "--shm-size",
    ),
    _pattern(
        r"fork(:| failed: | child: )(retry: )?Resource temporarily unavailable|can't start new "
        r"thread",
        "the container may start no more processes",
        "raise `pids` in [container] of suite.toml, or --pids; or `--ulimit nproc=...`, if given:"
        " it counts all processes of a user",
    ),
)

_CONTAINERS = (
    _pattern(
        r'container name "/?(?P<name>[^"]+)" is already in use',
        "a container {name} is there already",
        "another ci-perf may run; else remove it: `{engine} rm -f {name}`",
    ),
    _pattern(
        r"unable to find (?P<kind>user|group) (?P<name>[^:]+): no matching entries",
        "the image knows no {kind} {name}",
        "users are given as numbers, which no image needs to know",
    ),
    _pattern(
        r"container-init binary not found|docker-init.*(not found|no such file)",
        "the engine has no init to put before the worker",
        "install it (podman: the package catatonit; docker: tini or docker-init)",
    ),
    _pattern(
        r"bind source path does not exist: (.+?)\.?$|statfs (.+): no such file",
        "expected the folder {it} on the engine's host, found none",
        "the engine must run on the host that ci-perf runs on, and see the same files",
    ),
    _pattern(
        r'invalid mount config for type "bind": (.*?)\.?$|(statfs .+: permission '
        r'denied)|(error (?:mounting|while creating mount source path) "?[^"]+"? .*?)'
        r"(: unknown)?\.?$",
        "a folder cannot be shown to the container: {it}",
        "the engine must see the same files as ci-perf, and be allowed to read them",
    ),
    _pattern(
        r'exec:? "?([^"\s:]+)"?(?: failed)?: (executable file not found|stat .*: no such '
        r"file|No such file|no such file)|failed to exec pid1: No such file",
        "the image has no program {it} to start the worker with",
        "use an image with Python 3.11 or newer as `python3` (docs/containers.md)",
    ),
    _pattern(
        r'exec:? "?([^"\s:]+)"?(?: failed)?: permission denied|failed to exec pid1: '
        r"Permission denied",
        "the image's program {it} may not be executed by the worker's user",
        "make it readable and executable for everybody in the image (docs/containers.md)",
    ),
    _pattern(
        r"unknown (?:shorthand )?flag: (.+)",
        "this engine does not know an option that it was given: {it}",
        "use Docker 20.10 or Podman 4.3, or newer",
    ),
    _pattern(
        r"invalid (?:argument|value) (.+)",
        "the engine takes no such value: {it}",
        "correct it in [container] of suite.toml, or in the option that says it (--memory, --cpus, "
        "...)",
    ),
    _pattern(
        r"no such (container|object)",
        "the container is gone: somebody else removed it",
        "see whether a cleaning job runs beside the measurement (`{engine} system prune`)",
    ),
)

# The first pattern that matches counts, so the particular stands before the general: a daemon that
# does not answer before a registry, a full disk before the mount that it has broken.
PATTERNS = (*_DAEMON, *_GPUS, *_IMAGES, *_LIMITS, *_CONTAINERS)


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
    r"|unable to start container process: |failed to solve( with frontend [\w.]+)?: "
    r"|failed to create LLB definition: )+"
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

    Of words that no pattern matches, the last line that says something is passed on, shortened.
    """
    lines = _meaningful(said)
    return (
        known(engine, stage, "\n".join(lines))
        or f"`{engine} {stage}` failed: {_last(lines)}; {further(engine)}"
    )


def reason(said: str) -> str:
    """Return the last line that says something, without the name of the program."""
    return _last(_meaningful(said))


def further(engine: EngineName) -> str:
    """Name the command that may say more."""
    return f"`ci-perf doctor --runner {engine}` looks further"


def known(engine: EngineName, stage: str, said: str) -> str | None:
    """Say what these words mean, and what to do; `None` if no pattern matches them."""
    return next((_in_words(engine, stage, error, match) for error, match in _matches(said)), None)


def short(words: str) -> str:
    """Put foreign words in one line of bounded length; of a long one, the end says more."""
    line = " ".join(words.split())
    return line if len(line) <= _MAX_CHARS else f"... {line[-_MAX_CHARS:]}"


def _matches(said: str) -> Iterable[tuple[ErrorPattern, re.Match[str]]]:
    for error in PATTERNS:
        if match := error.pattern.search(said):
            yield error, match


def _in_words(engine: EngineName, stage: str, error: ErrorPattern, match: re.Match[str]) -> str:
    words = {name: short(word or "") for name, word in match.groupdict().items()}
    words["it"] = short(next(filter(None, match.groups()), ""))
    what, then = (said.format(engine=engine, **words) for said in (error.what, error.next_step))
    # Where there was nothing to name, its place closes up.
    return f"`{engine} {stage}`: {' '.join(what.split()).rstrip(': ')}; {then}"


def _meaningful(said: str) -> list[str]:
    lines = (line.strip() for line in said.splitlines())
    return [line for line in lines if not _NOISE.search(line)]


def _last(lines: list[str]) -> str:
    if not lines:
        return "it said nothing"
    return short(_SUFFIXES.sub("", _PREFIXES.sub("", lines[-1]), count=1)) or lines[-1]
