"""From which files modules were imported."""

import functools
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

# The tool measures both sides, also where its own repository is under measure.
OURS = Path(os.path.realpath(__file__)).parents[1]
INSTALLED = {"dist-packages", "site-packages"}
# Modules that a message names.
_SHOWN = 3
_NO_NAMES = {"", ".", ".."}


def files(modules: Mapping[str, object]) -> list[tuple[str, str]]:
    """Return modules with their files as Python found them, links not followed; not our own."""
    named = (
        (name, vars_of(module).get("__file__"))
        for name, module in sorted(modules.items())
        if name.partition(".")[0] != OURS.name
    )
    return [(name, file) for name, file in named if isinstance(file, str)]


def list_imported(modules: Mapping[str, object]) -> Iterable[tuple[str, str]]:
    """Yield every module with its real file, a namespace with its first folder."""
    for name, module in sorted(modules.items()):
        said = vars_of(module)
        file = said.get("__file__")
        if isinstance(file, str):
            yield name, real_path(file)
        elif file is None and "__path__" in said:
            yield from _namespace(name, said["__path__"])


def vars_of(module: object) -> Mapping[str, object]:
    """Return the variables of a module. A lazy module would import what getattr asks for."""
    return getattr(module, "__dict__", {})


def _namespace(name: str, folders: object) -> Iterable[tuple[str, str]]:
    """Yield the first folder of a namespace: it is searched before the others."""
    try:
        first = next(iter(folders), None)  # type: ignore[call-overload]  # whatever stands there
    except Exception:  # noqa: BLE001  a module of the user's own making
        return
    if isinstance(first, str):
        yield name, real_path(first)


def real_path(path: str) -> str:
    """Return `os.path.realpath(path)`, without looking at a folder that was looked at before."""
    folder, _, name = path.rpartition(os.sep)
    if name in _NO_NAMES or not folder.startswith(os.sep):
        return os.path.realpath(path)
    # A Path takes longer to make than to ask.
    real = os.path.join(_real_folder(folder), name)  # noqa: PTH118
    return os.path.realpath(path) if os.path.islink(real) else real  # noqa: PTH114


# A process imports thousands of modules, from some hundred folders.
_real_folder = functools.cache(real_path)


def in_words(modules: list[tuple[str, Path]]) -> str:
    """Name the first of some modules, and the file of the very first."""
    names = [name for name, _ in modules[:_SHOWN]]
    names[0] = f"{names[0]} ({modules[0][1]})"
    more = f" and {len(modules) - _SHOWN} more" if len(modules) > _SHOWN else ""
    return ", ".join(names) + more
