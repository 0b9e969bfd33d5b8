"""What a container is given, from words KEY=VALUE to a launcher.

A container sees the checkout and nothing else of this machine: `check_mounts` refuses links that
lead out of it. Without a container, measured code has every right that we have.
"""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from ci_perf import suite as suites
from ci_perf.api_types import Notify
from ci_perf.errors import UsageError
from ci_perf.features.containers import launch
from ci_perf.features.containers.launch import ContainerSide, Settings, engine, images
from ci_perf.features.containers.launch.arguments import GpuAccess
from ci_perf.features.containers.launch.engine import Engine
from ci_perf.gate.runners import Runner
from ci_perf.launch.run_task import Launcher
from ci_perf.model.base import CpuList, Struct
from ci_perf.model.container import Container, EngineName, Image, Pids, Size
from ci_perf.model.suite import Plan
from ci_perf.system.signals import Interrupts
from ci_perf.worktree import Checkout


class Choice(Struct, frozen=True, kw_only=True):
    """What whoever starts ci-perf gives a container; docs/containers.md describes each field.

    What is left out is as suite.toml says.
    """

    engine: EngineName
    image: str | None = None
    allow_image: tuple[str, ...] = ()
    allow_unpinned: bool = False
    gpu_access: GpuAccess | None = None
    data: Path | None = None
    checkpoints: Path | None = None
    memory: Size | None = None
    shm_size: Size | None = None
    tmp_size: Size | None = None
    pids: Pids | None = None
    cpus: CpuList | None = None
    ulimit: tuple[str, ...] = ()


# The fields by their keys in `--container KEY=VALUE`, and what those may say that are no text.
KEYS = {name.replace("_", "-"): name for name in Choice.__struct_fields__ if name != "engine"}
_LIMITS = {
    "memory": "a size such as 32g or 512m",
    "shm_size": "a size such as 8g or 512m",
    "tmp_size": "a size such as 8g or 512m",
    "pids": "a number between 16 and 4194304",
    "cpus": "numbers of cores, such as 0-3,8",
}
_EXPECTED = _LIMITS | {"allow_unpinned": "true or false", "gpu_access": "gpus or cdi"}
_SEVERAL = {"allow_image", "ulimit"}


def read(runner: Runner) -> Choice:
    """Return what words KEY=VALUE say; allow-image and ulimit add up.

    Raises UsageError: no such key, or a value that fits no container.
    """
    said: dict[str, Any] = {"engine": runner.kind}
    chosen = _convert(said)
    for word in runner.container:
        key, _, value = word.partition("=")
        name = KEYS.get(key, "")
        if not (name and value):
            raise UsageError(
                f"--container: expected KEY=VALUE with one of the keys {', '.join(KEYS)}, found "
                f"{word!r}"
            )
        said[name] = (*said.get(name, ()), value) if name in _SEVERAL else value
        try:
            chosen = _convert(said)
        except msgspec.ValidationError:
            raise UsageError(
                f"--container {key}: expected {_EXPECTED[name]}, found {value!r}"
            ) from None
    for name, folder in (("data", chosen.data), ("checkpoints", chosen.checkpoints)):
        if folder is not None and not folder.is_dir():
            raise UsageError(f"--container {name}={folder}: expected a folder, found none")
    return chosen


def _convert(said: dict[str, Any]) -> Choice:
    return msgspec.convert(
        said, Choice, strict=False, dec_hook=lambda _, text: Path(text).resolve()
    )


@contextlib.contextmanager
def open_launcher(
    runner: Runner,
    plan: Plan,
    workloads: Path,
    checkout: Checkout | None,
    *,
    run: str,
    ending: Interrupts,
    notify: Notify,
) -> Iterator[Launcher]:
    """Provide what launches processes in containers. Raises CiPerfError, KeyboardInterrupt.

    With a `checkout`, the base is launched in the image that its own suite.toml names, or in that
    of `--base-image`.
    """
    chosen = read(runner)
    check_mounts(plan, workloads)
    chosen_engine = engine.find(chosen.engine)
    with ending.raising():  # an image may be pulled for an hour
        sides = _sides(chosen, chosen_engine, plan, checkout, notify)
    settings = Settings(
        engine=chosen_engine,
        limits=_limits(plan.container, chosen),
        gpu_access=chosen.gpu_access or ("cdi" if chosen_engine.name == "podman" else "gpus"),
        data=chosen.data or _data(notify),
        checkpoints=chosen.checkpoints,
        ulimits=chosen.ulimit,
    )
    with launch.launcher(sides, settings, run=run, say=notify) as there:
        yield there


def _data(notify: Notify) -> Path | None:
    """Return the folder of data that the machine's owner has named, and say where there is none."""
    named = os.environ.get("CI_PERF_DATA_DIR")
    if not named:
        return None
    if Path(named).is_dir():
        return Path(named).resolve()
    notify(
        f"note: CI_PERF_DATA_DIR: expected the folder {named}, found none: /data is an empty "
        "folder of this run"
    )
    return None


def _limits(said: Container, runner: Choice) -> Container:
    """Return what suite.toml says, where no option says otherwise."""
    given = {name: value for name in _LIMITS if (value := getattr(runner, name)) is not None}
    return msgspec.structs.replace(said, **given)


def _sides(
    runner: Choice,
    chosen_engine: Engine,
    plan: Plan,
    checkout: Checkout | None,
    notify: Notify,
) -> list[ContainerSide]:
    head = _image(runner, chosen_engine, plan.container.image, "the head", notify)
    sides = [ContainerSide(root=Path(plan.root), image=head)]
    if checkout is not None:
        pinned = checkout.plan.container.image if checkout.plan else plan.container.image
        is_own = not runner.image and pinned not in {"", plan.container.image}
        if checkout.python is not None:
            runner, is_own = msgspec.structs.replace(runner, image=checkout.python.image), True
        base = _image(runner, chosen_engine, pinned, "the base", notify) if is_own else head
        sides.append(ContainerSide(root=checkout.root, image=base))
    return sides


def _image(runner: Choice, chosen_engine: Engine, pinned: str, whose: str, notify: Notify) -> Image:
    """Find the image of one side. Raises UsageError, EngineError."""
    reference = runner.image or pinned
    if not reference:
        raise UsageError(
            f"--runner {runner.engine}: expected an image for {whose}, found none; say "
            '`[container] image = "NAME@sha256:DIGEST"` in suite.toml (`ci-perf pin`), or '
            "--container image=NAME@sha256:DIGEST"
        )
    if not runner.image and not images.is_allowed(reference, runner.allow_image):
        raise UsageError(
            f"suite.toml of {whose}: image {reference}: expected one of "
            f"{', '.join(runner.allow_image)} (--container allow-image), found another; "
            "the workflow, or the user who runs ci-perf, must allow it"
        )
    return images.resolve(
        chosen_engine, reference, allow_unpinned=runner.allow_unpinned, say=notify
    )


def check_mounts(plan: Plan, workloads: Path) -> None:
    """Refuse what would show a container more than was meant. Raises UsageError."""
    root = Path(plan.root)
    if root in {Path("/"), _home()}:
        raise UsageError(
            f"{root}: expected the root of a repository, found the whole "
            f"{'machine' if root == Path('/') else 'home folder'}, which a container would see; "
            "change into the repository"
        )
    meant = [root, Path(os.path.realpath(suites.find_shipped("workloads")))]
    folder = Path(os.path.abspath(root / workloads))  # noqa: PTH100  `resolve` would follow links
    if not folder.is_relative_to(root):  # named by whoever starts ci-perf, and no link of a commit
        meant.append(Path(os.path.realpath(folder)))
    for workload in plan.workloads:
        if not any(Path(workload.file).is_relative_to(place) for place in meant):
            raise UsageError(
                f"workload {workload.id}: expected a file of {root}, found a link that leads to "
                f"{workload.file}; a container sees only files inside of the checkout"
            )


def _home() -> Path | None:
    try:
        return Path(os.path.realpath(Path.home()))
    except RuntimeError:  # a user without a name and without HOME
        return None
