"""The flags with which a container is made: as little of the machine as measuring needs.

docs/containers.md gives the reason for each; tests look at each from the inside.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from ci_perf.errors import CiPerfError
from ci_perf.features.containers.launch.mounts import Mount, User
from ci_perf.model.container import Container, EngineName

# How a container is given GPUs: by docker's --gpus, or by the Container Device Interface.
GpuAccess = Literal["gpus", "cdi"]
HOSTNAME = "ci-perf"

# A name for whatever asks who it is: torch's default cache folder does.
USER = "ci-perf"

# Holds the name of the container: by it a process of this host is known as one of its.
NAME_VARIABLE = "CI_PERF_NAME"
RUN_LABEL = "dev.ci_perf.run"
OWNER_LABEL = "dev.ci_perf.owner"

# How a host names the driver of its GPUs; the second is Windows' own.
_DRIVERS = (Path("/dev/nvidiactl"), Path("/dev/dxg"))
ALL = ("all",)
# None is the host's.
_ENVIRONMENT = {
    "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
    "HF_DATASETS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HUB_OFFLINE": "1",
    "HOME": "/tmp",  # noqa: S108  a file system of its own
    "LC_ALL": "C.UTF-8",
    "LOGNAME": USER,
    "NCCL_SOCKET_IFNAME": "lo",
    "NVIDIA_DRIVER_CAPABILITIES": "compute,utility",
    "PYTHONDONTWRITEBYTECODE": "1",
    "USER": USER,
}


def visible_gpus(device: str, environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the GPUs among which `device` counts: all, or those of CUDA_VISIBLE_DEVICES."""
    if device == "cpu" or (device == "auto" and not any(driver.exists() for driver in _DRIVERS)):
        return ()
    chosen = environment.get("CUDA_VISIBLE_DEVICES")
    if chosen is None:
        return ALL
    return tuple(gpu for part in chosen.split(",") if (gpu := part.strip()) not in {"", "-1"})


def gpus_of_task(
    device: str, gpus: tuple[str, ...], count: int, environment: Mapping[str, str]
) -> tuple[str, ...]:
    """Return the GPUs of a task: by UUID, else by number from `device` on."""
    if not device.startswith("cuda"):
        return ()
    if len(gpus) == count:
        return gpus
    first = int(device.partition(":")[2] or 0)
    among = visible_gpus(device, environment)
    if among == ALL:
        return tuple(str(first + number) for number in range(count))
    return among[first : first + count]


def create(
    engine: EngineName,
    *,
    name: str,
    image: str,
    command: Sequence[str],
    run: str,
    owner: str,
    user: User,
    limits: Container,
    mounts: Sequence[Mount],
    environment: Mapping[str, str],
    workdir: str,
    gpus: Sequence[str] = (),
    gpu_access: GpuAccess = "gpus",
    hidden: Sequence[str] = (),
    ulimits: Sequence[str] = (),
) -> list[str]:
    """Spell the arguments of `create`. `command` begins with the program.

    It is labelled by its `run`, and by its `owner`, the process that will remove it. `gpus` are
    UUIDs or numbers; "all" is all of them. Raises CiPerfError.
    """
    program, *rest = command
    # Where the engine gives GPUs, the runtime of NVIDIA must not give others: images of CUDA ask
    # for all of them. With --gpus it is the engine that says which.
    seen = {} if gpus and gpu_access == "gpus" else {"NVIDIA_VISIBLE_DEVICES": "void"}
    variables = {**_ENVIRONMENT, NAME_VARIABLE: name, **seen, **environment}
    return [
        # A health check of the image would run beside what is timed.
        *("create", "--name", name, "--pull", "never", "--init", "--no-healthcheck"),
        *("--label", f"{RUN_LABEL}={run}", "--label", f"{OWNER_LABEL}={owner}"),
        *_close_all(engine, limits),
        *_size(limits),
        *_user(user),
        *_ulimits(engine, ulimits),
        *_gpus(gpus, gpu_access),
        *(part for mount in mounts for part in _mount(mount)),
        *(
            part
            for folder in hidden
            for part in ("--tmpfs", f"{folder}:ro,{_empty(engine, '4k', 0o555)}")
        ),
        *(part for key, value in sorted(variables.items()) for part in ("--env", f"{key}={value}")),
        *("--workdir", workdir, "--entrypoint", program, image, *rest),
    ]


def _close_all(engine: EngineName, limits: Container) -> list[str]:
    """Leave nothing open: no network, no capability, nothing writable but memory."""
    return [
        *("--network", "none"),
        # Without a network nobody resolves the host's own name, and torchrun waits for it for ever.
        *("--hostname", HOSTNAME, "--add-host", f"{HOSTNAME}:127.0.0.1"),
        "--read-only",
        # exec: what torch.compile has built is loaded from there.
        *("--tmpfs", f"/tmp:rw,exec,nosuid,nodev,{_empty(engine, limits.tmp_size, 0o1777)}"),  # noqa: S108
        *("--cap-drop", "ALL", "--security-opt", "no-new-privileges"),
        # We read its output ourselves, and keep the end of it.
        *("--log-driver", "none"),
        # podman would lay more of these over a read-only image, of its own choice.
        *(("--read-only-tmpfs=false",) if engine == "podman" else ()),
    ]


def _size(limits: Container) -> list[str]:
    """Limit what it takes of the machine. No CPU quota: it stops all threads for up to 50 ms."""
    flags = ["--pids-limit", str(limits.pids), "--shm-size", limits.shm_size]
    if limits.memory:
        # No swap: what swaps is not worth measuring.
        flags += ["--memory", limits.memory, "--memory-swap", limits.memory]
    if limits.cpus:
        flags += ["--cpuset-cpus", limits.cpus]
    return flags


def _user(user: User) -> list[str]:
    userns = ["--userns", user.userns] if user.userns else []
    return [*userns, "--user", f"{user.uid}:{user.gid}"]


def _ulimits(engine: EngineName, ulimits: Sequence[str]) -> list[str]:
    # podman: any --ulimit replaces all of its configuration's.
    ours = ["core=0:0"] if engine == "docker" else []
    return [part for limit in (*ours, *ulimits) for part in ("--ulimit", limit)]


def _gpus(gpus: Sequence[str], access: GpuAccess) -> list[str]:
    if not gpus:
        return []
    if access == "cdi":
        return [part for gpu in gpus for part in ("--device", f"nvidia.com/gpu={gpu}")]
    if tuple(gpus) == ALL:
        return ["--gpus", "all"]
    # The quotes are docker's: without them it takes what follows a comma for another setting.
    return ["--gpus", f'"device={",".join(gpus)}"']


def _empty(engine: EngineName, size: str, mode: int) -> str:
    """Spell a memory file system; podman would fill it with what it is to hide."""
    only = ",notmpcopyup" if engine == "podman" else ""
    return f"size={size},mode={mode:04o}{only}"


def _mount(mount: Mount) -> list[str]:
    """Spell one mount. Raises CiPerfError: the engines split it at commas."""
    source = str(mount.source)
    if set(source) & set(',"\n'):
        raise CiPerfError(
            f"{source!r}: expected a path without commas, quotes and line breaks, which engines of "
            "containers cannot mount; rename the folder, or measure with `--runner local`"
        )
    access = "" if mount.writable else ",readonly"
    return ["--mount", f"type=bind,src={source},dst={mount.target}{access}"]
