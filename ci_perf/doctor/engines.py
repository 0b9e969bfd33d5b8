"""Whether containers can be started on this host, and given its GPUs. Pure."""

from collections.abc import Iterable

from ci_perf.doctor import evidence
from ci_perf.doctor.finding import Finding, Level, problem
from ci_perf.model.facts import Containers, EngineAnswer, EngineSilence, Graphics, Space, Toolkit

GIB = 2**30

# A PyTorch image takes about 12 GB unpacked, and as much again while it is pulled: pytorch/pytorch
# 2.8.0-cuda12.8-cudnn9-runtime is "12.10 GB" on disk.
MIN_ENGINE_BYTES = 24 * GIB

_INSTALL_TOOLKIT = (
    "Install the NVIDIA Container Toolkit (the package nvidia-container-toolkit), then `sudo "
    "nvidia-ctk runtime configure --runtime=docker` and restart the daemon."
)
_WRITE_CDI = (
    "Install the NVIDIA Container Toolkit (the package nvidia-container-toolkit), then `sudo "
    "nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml`."
)


def explain(containers: Containers, graphics: Graphics) -> list[Finding]:
    """Say whether the engine works, with what, and what it lacks."""
    engine = containers.engine
    if isinstance(engine, EngineSilence):
        return [_silent(engine)]
    found = [_works(engine), *_room(engine.data), *_storage(engine), *_limits(engine)]
    found += _checkout(containers)
    if evidence.has_gpu(graphics):
        found.append(_gpus(engine, containers))
    return found


def _silent(engine: EngineSilence) -> Finding:
    code = "engine_silent" if engine.is_installed else "engine_absent"
    return problem(code, _sentence(engine.why), _sentence(engine.next_step))


def _works(engine: EngineAnswer) -> Finding:
    return Finding(
        code="engine_works",
        level=Level.OK,
        what=f"{engine.name} {engine.version} answers ({described(engine)}).",
    )


def described(engine: EngineAnswer) -> str:
    """Describe an engine in a few words."""
    who = "rootless" if engine.rootless else "as root"
    return f"{who}, {engine.storage or 'unknown'}, cgroup v{engine.cgroups or '?'}"


def _room(data: Space | None) -> Iterable[Finding]:
    if data is not None and data.free_bytes < MIN_ENGINE_BYTES:
        yield Finding(
            code="little_disk_for_images",
            level=Level.WARNING,
            what=f"{data.path}, where the engine keeps images, has {data.free_bytes / GIB:.1f} GiB "
            f"free: expected at least {MIN_ENGINE_BYTES // GIB} GiB to pull an image with torch "
            "and CUDA.",
            next_step="Remove images that nobody uses (`docker image prune`, `podman image "
            "prune`), or give the engine a larger disk.",
        )


def _storage(engine: EngineAnswer) -> Iterable[Finding]:
    if engine.storage == "vfs":
        yield Finding(
            code="slow_storage",
            level=Level.WARNING,
            what=f"{engine.name} copies the whole image for each container (storage driver vfs).",
            next_step="Let it use overlay: the storage driver overlay2 of docker, overlay of "
            "podman.",
        )


def _limits(engine: EngineAnswer) -> Iterable[Finding]:
    """Look for limits that nobody enforces: rootless engines need control groups version 2."""
    if engine.rootless and engine.cgroups == "1":
        yield Finding(
            code="no_limits",
            level=Level.WARNING,
            what=f"A rootless {engine.name} limits neither memory nor processes nor cores with "
            "control groups version 1.",
            next_step="Boot with version 2 (`systemd.unified_cgroup_hierarchy=1`), or run the "
            "engine as root.",
        )


def _checkout(containers: Containers) -> Iterable[Finding]:
    """Say that no container can read what is here: root is nobody inside."""
    if containers.unreadable is not None:
        yield problem(
            "checkout_unreadable",
            _sentence(containers.unreadable.why),
            _sentence(containers.unreadable.next_step),
        )


def _gpus(engine: EngineAnswer, containers: Containers) -> Finding:
    """Say whether GPUs get in: what was tried says more than what is installed."""
    refused = containers.gpus_refused
    if refused is not None:
        return problem(
            "gpus_refused",
            f"A container with the GPUs of this host could not be started: {refused.why}.",
            _sentence(refused.next_step),
        )
    if not _can_pass_gpus(engine, containers.toolkit):
        return problem(
            "toolkit_missing",
            f"There is an NVIDIA GPU and {engine.name} has no way to give it to a container: "
            f"{_lacking(engine, containers.toolkit)}.",
            _INSTALL_TOOLKIT if engine.name == "docker" else _WRITE_CDI,
        )
    return Finding(
        code="toolkit_works",
        level=Level.OK,
        what=f"{engine.name} can give GPUs to containers: {_having(engine, containers.toolkit)}.",
    )


def _can_pass_gpus(engine: EngineAnswer, toolkit: Toolkit) -> bool:
    by_cdi = bool(toolkit.cdi) and engine.knows_cdi
    return by_cdi or (engine.name == "docker" and (engine.nvidia_runtime or toolkit.hook))


def _lacking(engine: EngineAnswer, toolkit: Toolkit) -> str:
    cdi = "no CDI specification in /etc/cdi or /var/run/cdi names nvidia.com/gpu"
    if engine.name == "podman":
        return cdi
    version = f"; nvidia-ctk {toolkit.version} is installed" if toolkit.version else ""
    return f"neither the runtime nvidia nor nvidia-container-runtime-hook is there{version}"


def _having(engine: EngineAnswer, toolkit: Toolkit) -> str:
    ways = [
        "the runtime nvidia" if engine.nvidia_runtime else "",
        "nvidia-container-runtime-hook" if toolkit.hook and engine.name == "docker" else "",
        ", ".join(toolkit.cdi) if engine.knows_cdi else "",
        f"nvidia-ctk {toolkit.version}" if toolkit.version else "",
    ]
    return ", ".join(filter(None, ways))


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:].rstrip('.')}." if words else words
