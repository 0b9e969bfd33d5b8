"""What an engine says of itself, as facts for the doctor. Judges nothing."""

from pathlib import Path

import msgspec

from ci_perf.doctor.machine_facts import Sources
from ci_perf.errors import CiPerfError
from ci_perf.launch.containers import engine as engines
from ci_perf.launch.containers import failures
from ci_perf.model.container import EngineName
from ci_perf.model.facts import EngineAnswer, EngineSilence, Refused, Space


def look(name: EngineName, sources: Sources) -> EngineAnswer | EngineSilence:
    """Ask an engine who it is."""
    try:
        engine = engines.find(name, sources.environ)
    except CiPerfError as error:
        return _silent(name, error, is_installed=False)
    try:
        return _read_info[name](engine.must("info", "--format", "{{json .}}"), sources)
    except CiPerfError as error:
        return _silent(name, error, is_installed=True)
    except msgspec.MsgspecError as error:
        words = f"`{name} info`: expected JSON, found {error}; bring {name} up to date"
        return _silent(name, CiPerfError(words), is_installed=True)


def _silent(name: EngineName, error: CiPerfError, *, is_installed: bool) -> EngineSilence:
    why = refused(name, error)
    return EngineSilence(name=name, is_installed=is_installed, why=why.why, next_step=why.next_step)


def refused(name: EngineName, error: CiPerfError) -> Refused:
    """Take a message of ours apart: what is wrong, then the next step."""
    why, _, then = str(error).partition("; ")
    if then in ("", failures.further(name)):
        then = f"try it by hand: `{name} info`, then `{name} run --rm IMAGE python3 --version`"
    return Refused(why=why, next_step=then)


class _Docker(msgspec.Struct, rename="pascal"):
    """What `docker info` says, of all that it says. Docker 20.10 tells errors only in there."""

    server_version: str = ""
    driver: str = ""
    cgroup_version: str = ""
    architecture: str = ""
    docker_root_dir: str = ""
    runtimes: dict[str, msgspec.Raw] | None = None
    security_options: list[str] | None = None
    server_errors: list[str] | None = None
    cdi_spec_dirs: list[str] | None = msgspec.field(name="CDISpecDirs", default=None)


def _read_docker(text: str, sources: Sources) -> EngineAnswer:
    said = msgspec.json.decode(text, type=_Docker)
    if said.server_errors or not said.server_version:
        words = "\n".join(said.server_errors or ["no server"])
        raise engines.EngineError(failures.explained("docker", "info", words))
    return EngineAnswer(
        name="docker",
        version=said.server_version,
        rootless=any("name=rootless" in option for option in said.security_options or []),
        storage=said.driver,
        cgroups=said.cgroup_version,
        architecture=said.architecture,
        data=_space(said.docker_root_dir, sources),
        nvidia_runtime="nvidia" in (said.runtimes or {}),
        knows_cdi=bool(said.cdi_spec_dirs),
    )


class _Security(msgspec.Struct, frozen=True):
    rootless: bool = False


class _Host(msgspec.Struct, rename="camel"):
    arch: str = ""
    cgroup_version: str = ""
    security: _Security = _Security()


class _Store(msgspec.Struct, rename="camel"):
    graph_driver_name: str = ""
    graph_root: str = ""


class _Version(msgspec.Struct, rename="pascal"):
    version: str = ""


class _Podman(msgspec.Struct):
    """What `podman info` says, of all that it says."""

    host: _Host
    store: _Store
    version: _Version


def _read_podman(text: str, sources: Sources) -> EngineAnswer:
    said = msgspec.json.decode(text, type=_Podman)
    return EngineAnswer(
        name="podman",
        version=said.version.version,
        rootless=said.host.security.rootless,
        storage=said.store.graph_driver_name,
        cgroups=said.host.cgroup_version.removeprefix("v"),
        architecture=said.host.arch,
        data=_space(said.store.graph_root, sources),
        nvidia_runtime=False,
        knows_cdi=True,
    )


_read_info = {"docker": _read_docker, "podman": _read_podman}


def _space(folder: str, sources: Sources) -> Space | None:
    return sources.space(Path(folder)) if folder else None
