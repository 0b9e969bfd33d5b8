"""Read fleet.toml, and open the engine that it describes."""

import os
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

from ci_perf.errors import InvalidFileError, UsageError
from ci_perf.fleet import kubernetes, local, ray, transfer
from ci_perf.fleet.command import CommandEngine
from ci_perf.fleet.engine import FleetEngine
from ci_perf.fleet.kubernetes import KubernetesEngine
from ci_perf.fleet.local import LocalEngine
from ci_perf.fleet.ray import RayEngine
from ci_perf.fleet.slurm import SlurmEngine
from ci_perf.model import codec
from ci_perf.model.fleet import FleetEngineName, FleetFile
from ci_perf.system import files


def load(path: Path) -> FleetFile:
    """Read fleet.toml. Raises InvalidFileError that names file and place."""
    text = files.read_text(path)
    try:
        data = tomllib.loads(text)
    except RecursionError:
        raise InvalidFileError(f"{path}: expected TOML, found it nested too deep") from None
    except ValueError as error:
        raise InvalidFileError(f"{path}: expected TOML, found: {error}") from None
    return codec.convert(data, FleetFile, name=str(path))


def class_of(name: str | None, fleet: FleetFile, *, path: Path) -> str:
    """Return the class that a unit runs on. Raises UsageError: not one that fleet.toml has."""
    if name is None and len(fleet.classes) == 1:
        return next(iter(fleet.classes))
    if name in fleet.classes:
        return str(name)
    named = "units without a class" if name is None else f"units of class {name!r}"
    raise UsageError(
        f"{path}: expected [class.NAME] for every class of the plan, found {named}; "
        + codec.did_you_mean(name or "", sorted(fleet.classes))
    )


def check(name: FleetEngineName, fleet: FleetFile, *, path: Path) -> None:
    """Refuse a file that does not describe this engine. Raises UsageError that names the file."""
    if name in {"command", "kubernetes"} and getattr(fleet.engine, name) is None:
        raise UsageError(f"{path}: expected a table [engine.{name}], found none")
    try:
        if name == "local":
            local.check(fleet.classes)
        if name == "ray":
            for class_name, node_class in fleet.classes.items():
                ray.resources(class_name, node_class)
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None


def engine(
    name: FleetEngineName,
    fleet: FleetFile,
    *,
    path: Path,
    folder: Path,
    root: Path,
    is_checkout_measured: bool = True,
) -> FleetEngine:
    """Open an engine. Raises UsageError: its table is missing, or does not fit the folders.

    Where units name their commits, what is checked out at `root` may be changed.
    """
    check(name, fleet, path=path)
    tables = fleet.engine
    match name:
        case "local":
            return LocalEngine(fleet.environment, os.environ)
        case "slurm":
            return SlurmEngine(
                tables.slurm, python=python(name, fleet), environment=fleet.environment
            )
        case "command" if tables.command is not None:
            return CommandEngine(tables.command, python=python(name, fleet))
        case "kubernetes" if tables.kubernetes is not None:
            kubernetes.check(folder, root, tables.kubernetes)
            return KubernetesEngine(tables.kubernetes, _named(fleet.environment, os.environ))
        case "ray":
            if is_checkout_measured:
                transfer.check(root)
            return RayEngine(tables.ray, python=python(name, fleet), root=root)
        case _:
            raise UsageError(f"{path}: expected a table [engine.{name}], found none")


def python(name: FleetEngineName, fleet: FleetFile) -> str:
    """Return the interpreter of the nodes."""
    tables = fleet.engine
    if name == "kubernetes" and tables.kubernetes is not None:
        return tables.kubernetes.python
    if name == "slurm":
        return tables.slurm.python or sys.executable
    if name == "ray":
        return tables.ray.python or sys.executable
    if name == "command" and tables.command is not None:
        return tables.command.python or sys.executable
    return sys.executable


def _named(names: Sequence[str], ours: Mapping[str, str]) -> dict[str, str]:
    return {name: ours[name] for name in names if name in ours}
