"""Where workloads run: --runner with all that belongs to it, from options to a launcher."""

import contextlib
import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

import click
import msgspec
from click.core import ParameterSource

from ci_perf import suite as suites
from ci_perf.cli import output
from ci_perf.errors import CiPerfError, UsageError
from ci_perf.gate import boundaries
from ci_perf.launch import Launcher, containers, local
from ci_perf.launch.containers import Settings, Side, engine, images
from ci_perf.launch.containers.arguments import GpuAccess
from ci_perf.launch.containers.engine import Engine
from ci_perf.model.container import Container, EngineName, Image
from ci_perf.model.suite import Plan
from ci_perf.system.signals import Interrupts
from ci_perf.worktree import Checkout

Runner = Literal["local"] | EngineName

_Command = TypeVar("_Command", bound=Callable[..., Any])
_FOLDER = click.Path(exists=True, file_okay=False, resolve_path=True, path_type=Path)
# As docker spells them: "memlock=-1", "nofile=1024:4096".
_ULIMIT = re.compile(r"[a-z]{1,20}=-?[0-9]{1,12}(:-?[0-9]{1,12})?")
_ULIMIT_NAMES = (
    *("core", "cpu", "data", "fsize", "locks", "memlock", "msgqueue", "nice", "nofile", "nproc"),
    *("rss", "rtprio", "rttime", "sigpending", "stack"),
)
# The options that suite.toml has words for, too, and what may be said.
_LIMITS = {
    "memory": "a size such as 32g or 512m",
    "shm_size": "a size such as 8g or 512m",
    "tmp_size": "a size such as 8g or 512m",
    "pids": "a number between 16 and 4194304",
    "cpus": "numbers of cores, such as 0-3,8",
}

_OPTIONS = (
    click.option(
        "--runner",
        type=click.Choice(["local", *get_args(EngineName)]),
        default="local",
        show_default=True,
        help="Where each process runs: here, or in a container of its own.",
    ),
    click.option(
        "--image",
        metavar="NAME@sha256:DIGEST",
        help="The image, for both sides; by default as [container] in suite.toml says.",
    ),
    click.option(
        "--allow-image",
        multiple=True,
        metavar="PREFIX",
        help="An image that suite.toml may name: a registry, a folder in it, or a repository. Any, "
        "when there is none of this option.",
    ),
    click.option(
        "--allow-unpinned",
        is_flag=True,
        help="Take an image by its tag, too; the run is then degraded.",
    ),
    click.option(
        "--gpu-access",
        type=click.Choice(get_args(GpuAccess)),
        help="How a container is given GPUs; by default gpus with docker, cdi with podman.",
    ),
    click.option(
        "--data",
        type=_FOLDER,
        help="A folder of data sets: /data in a container, where it cannot be changed; by default "
        "that of CI_PERF_DATA_DIR.",
    ),
    click.option(
        "--checkpoints", type=_FOLDER, help="A folder that a container may write: /checkpoints."
    ),
    click.option("--memory", metavar="SIZE", help="Memory of a container: 32g. No limit without."),
    click.option("--shm-size", metavar="SIZE", help="Its /dev/shm; suite.toml says 8g."),
    click.option("--tmp-size", metavar="SIZE", help="Its /tmp, in memory; suite.toml says 8g."),
    click.option("--pids", type=int, metavar="N", help="Its processes; suite.toml says 4096."),
    click.option("--cpus", metavar="LIST", help="Its CPUs: 0-3,8. All without."),
    click.option(
        "--ulimit",
        multiple=True,
        metavar="NAME=SOFT[:HARD]",
        help="A limit of its processes, as docker spells it; memlock=-1 for RDMA.",
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What the options say."""

    runner: Runner = "local"
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


def options(command: _Command) -> _Command:
    """Give a command the options of a runner: the fields of Choice."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def choice(*, outputs: Iterable[Path | None] = (), **said: Any) -> Choice:  # noqa: ANN401  click's
    """Return what the options say. Raises UsageError: what fits no container.

    `outputs` are files that will be written, where the measured code may have laid links.
    """
    chosen = Choice(**said)
    for limit in chosen.ulimit:
        name = limit.partition("=")[0]
        if not _ULIMIT.fullmatch(limit) or name not in _ULIMIT_NAMES:
            raise UsageError(
                f"--ulimit {limit}: expected NAME=SOFT[:HARD], such as memlock=-1, with one of the "
                f"names {', '.join(_ULIMIT_NAMES)}"
            )
    if chosen.runner == "local":
        _refuse_without_container(said)
    else:
        boundaries.check_outputs(outputs)
    _limits(Container(), chosen)
    return chosen


def spelled(chosen: Choice) -> tuple[str, ...]:
    """Return the words of a command line that say the same; none for what nobody has said."""
    default = Choice()
    words: list[str] = []
    for name in Choice.__dataclass_fields__:
        value = getattr(chosen, name)
        if value == getattr(default, name):
            continue
        option = f"--{name.replace('_', '-')}"
        for one in value if isinstance(value, tuple) else (value,):
            words += [option] if one is True else [option, str(one)]
    return tuple(words)


@contextlib.contextmanager
def launcher(
    chosen: Choice,
    plan: Plan,
    workloads: Path,
    checkout: Checkout | None,
    *,
    run: str,
    ending: Interrupts,
) -> Iterator[Launcher]:
    """Provide what launches the processes of a run. Raises CiPerfError, KeyboardInterrupt.

    With a `checkout`, the base is launched in the image that its own suite.toml names.
    """
    root = Path(plan.root)
    if chosen.runner == "local":
        with local.launcher(root) as here:
            yield here
        return
    boundaries.check_mounts(plan, workloads)
    found = engine.find(chosen.runner)
    with ending.raising():  # an image may be pulled for an hour
        sides = _sides(chosen, found, plan, workloads, checkout)
    settings = Settings(
        engine=found,
        limits=_limits(plan.container, chosen),
        gpu_access=chosen.gpu_access or ("cdi" if found.name == "podman" else "gpus"),
        data=chosen.data or _data(),
        checkpoints=chosen.checkpoints,
        ulimits=chosen.ulimit,
    )
    with containers.launcher(sides, settings, run=run, say=output.say) as there:
        yield there


def notes(launcher: Launcher) -> tuple[str, ...]:
    """Return what a reader has to know of the images of the two sides."""
    if not isinstance(launcher, containers.ContainerLauncher):
        return ()
    head, *others = [side.image for side in launcher.sides]
    return tuple(_of_two(head, base) for base in others if base.config != head.config)


def _of_two(head: Image, base: Image) -> str:
    tagged = "" if base.is_pinned else " (which is not pinned: it may be another one tomorrow)"
    return (
        f"each side has its own image: the head is measured in {images.name_for_comparison(head)}, "
        f"the base, where it is launched, in {images.name_for_comparison(base)}{tagged}"
    )


def _data() -> Path | None:
    """Return the folder of data that the machine's owner has named, and say where there is none."""
    named = os.environ.get("CI_PERF_DATA_DIR")
    if not named:
        return None
    if Path(named).is_dir():
        return Path(named).resolve()
    output.say(
        f"note: CI_PERF_DATA_DIR: expected the folder {named}, found none: /data is an empty "
        "folder of this run"
    )
    return None


def _refuse_without_container(said: Iterable[str]) -> None:
    """Refuse what only a container could obey: nobody must believe that it held.

    Variables may say it: they are for all that a machine does.
    """
    context = click.get_current_context()
    for name in said:
        if name != "runner" and context.get_parameter_source(name) == ParameterSource.COMMANDLINE:
            option = name.replace("_", "-")
            raise UsageError(
                f"--{option}: expected only with a container, found --runner local; add --runner "
                f"docker (or podman), or leave --{option} out"
            )


def _limits(said: Container, chosen: Choice) -> Container:
    """Return what suite.toml says, where no option says otherwise. Raises UsageError."""
    given = {name: value for name in _LIMITS if (value := getattr(chosen, name)) is not None}
    for name, value in given.items():
        try:
            msgspec.convert({name: value}, Container)
        except msgspec.ValidationError:
            raise UsageError(
                f"--{name.replace('_', '-')}: expected {_LIMITS[name]}, found {value!r}"
            ) from None
    return msgspec.structs.replace(said, **given)


def _sides(
    chosen: Choice, found: Engine, plan: Plan, workloads: Path, checkout: Checkout | None
) -> list[Side]:
    head = _image(chosen, found, plan.container.image, "the head")
    sides = [Side(root=Path(plan.root), image=head)]
    if checkout is not None:
        pinned = "" if chosen.image else _pinned_by_base(workloads, plan, checkout)
        base = _image(chosen, found, pinned, "the base") if pinned else head
        sides.append(Side(root=checkout.root, image=base))
    return sides


def _image(chosen: Choice, found: Engine, pinned: str, whose: str) -> Image:
    """Find the image of one side. Raises UsageError, EngineError."""
    reference = chosen.image or pinned
    if not reference:
        raise UsageError(
            f"--runner {chosen.runner}: expected an image for {whose}, found none; say "
            '`[container] image = "NAME@sha256:DIGEST"` in suite.toml (`ci-perf image pin`), or '
            "--image"
        )
    if not chosen.image and not images.is_allowed(reference, chosen.allow_image):
        raise UsageError(
            f"suite.toml of {whose}: image {reference}: expected one of "
            f"{', '.join(chosen.allow_image)} (--allow-image), found another; whoever runs ci-perf "
            "here has to allow it"
        )
    images.check(reference, allow_unpinned=chosen.allow_unpinned)
    return images.resolve(found, reference, allow_unpinned=chosen.allow_unpinned, say=output.say)


def _pinned_by_base(workloads: Path, plan: Plan, checkout: Checkout) -> str:
    """Return the image that the base's suite.toml names; nothing where it names none."""
    folder = Path(plan.root, workloads).resolve()
    if not folder.is_relative_to(plan.root):
        return ""  # a suite from elsewhere: both sides are measured by the same one
    there = checkout.root / folder.relative_to(plan.root)
    if not (there / "suite.toml").is_file():
        return ""
    try:
        return suites.load(there).container.image
    except CiPerfError as error:
        raise CiPerfError(
            f"the base's suite.toml says in which image it is measured, and cannot be read: {error}"
        ) from None
