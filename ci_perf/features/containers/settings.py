"""What a container is given, from words KEY=VALUE to a launcher.

A container sees the checkout and nothing else of this machine: `check_mounts` refuses links that
lead out of it. Without a container, measured code has every right that we have.
"""

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import msgspec

from ci_perf import suite as suites
from ci_perf.errors import UsageError
from ci_perf.features.containers import launch
from ci_perf.features.containers.launch import ContainerSide, Settings, engine, images
from ci_perf.features.containers.launch.arguments import GpuAccess
from ci_perf.features.containers.launch.engine import Engine
from ci_perf.gate import Notify
from ci_perf.gate.runners import Runner
from ci_perf.launch.run_task import Launcher
from ci_perf.model.container import Container, EngineName, Image
from ci_perf.model.suite import Plan
from ci_perf.system.signals import Interrupts
from ci_perf.worktree import Checkout

_ENGINES: dict[str, EngineName] = {name: name for name in get_args(EngineName)}

# The fields of Runner that suite.toml has words for, too, and what they may say.
_LIMITS = {
    "memory": "a size such as 32g or 512m",
    "shm_size": "a size such as 8g or 512m",
    "tmp_size": "a size such as 8g or 512m",
    "pids": "a number between 16 and 4194304",
    "cpus": "numbers of cores, such as 0-3,8",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
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
    memory: str | None = None
    shm_size: str | None = None
    tmp_size: str | None = None
    pids: int | None = None
    cpus: str | None = None
    ulimit: tuple[str, ...] = ()


# The fields by their keys in `--container KEY=VALUE`.
KEYS = {name.replace("_", "-"): name for name in Choice.__dataclass_fields__ if name != "engine"}
_WORDS = {"allow_unpinned": ("true", "false"), "gpu_access": get_args(GpuAccess)}


def read(runner: Runner) -> Choice:
    """Return what words KEY=VALUE say; allow-image and ulimit add up.

    Raises UsageError: no such key, or a value that fits no container.
    """
    said: dict[str, Any] = {}
    for word in runner.container:
        key, _, value = word.partition("=")
        if key not in KEYS or not value:
            raise UsageError(
                f"--container: expected KEY=VALUE with one of the keys {', '.join(KEYS)}, found "
                f"{word!r}"
            )
        name = KEYS[key]
        if name in _WORDS and value not in _WORDS[name]:
            raise UsageError(
                f"--container {key}: expected {' or '.join(_WORDS[name])}, found {value!r}"
            )
        said[name] = _read_value(name, value, said.get(name, ()))
    chosen = Choice(engine=_ENGINES[runner.kind], **said)
    _check(chosen)
    return chosen


def _read_value(name: str, text: str, before: tuple[str, ...]) -> Any:  # noqa: ANN401  of a field
    """Return the value of a field, after those that were given `before` where it has several."""
    if name in {"allow_image", "ulimit"}:
        return (*before, text)
    if name in {"data", "checkpoints"}:
        return Path(text).resolve()
    if name == "allow_unpinned":
        return text == "true"
    return int(text) if name == "pids" and text.isdecimal() else text


def _check(runner: Choice) -> None:
    """Refuse a value that fits no container. Raises UsageError."""
    for name, folder in (("data", runner.data), ("checkpoints", runner.checkpoints)):
        if folder is not None and not folder.is_dir():
            raise UsageError(f"--container {name}={folder}: expected a folder, found none")
    _limits(Container(), runner)


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

    With a `checkout`, the base is launched in the image that its own suite.toml names.
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
        data=chosen.data.resolve() if chosen.data else _data(notify),
        checkpoints=chosen.checkpoints.resolve() if chosen.checkpoints else None,
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
    """Return what suite.toml says, where no option says otherwise. Raises UsageError."""
    given = {name: value for name in _LIMITS if (value := getattr(runner, name)) is not None}
    for name, value in given.items():
        try:
            msgspec.convert({name: value}, Container)
        except msgspec.ValidationError:
            raise UsageError(
                f"--container {name.replace('_', '-')}: expected {_LIMITS[name]}, found {value!r}"
            ) from None
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
