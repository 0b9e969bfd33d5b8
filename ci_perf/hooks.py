"""Where features join the core: read this file first to add one.

A feature is a folder of `ci_perf/features/` whose ``__init__.py`` has a ``FEATURE``. Everything in
it is named as "module:attribute" and imported when it is used, so that the list of commands costs
no imports. The core imports no feature: without its folder, only what it names here is missing.
"""

import functools
import importlib
import pkgutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

T = TypeVar("T")
Group = Literal["First week", "Every day", "CI and scale"]
Moment = Literal[
    "after_pairs",
    "profiler",
    "after_judging",
    "section",
    "line_notes",
    "history_lines",
    "find_failure",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureCommand:
    """A command of the command line: its group in ``--help``, what it does, and its function.

    One that is not ``shown`` has its name alone there: few people need it, and know its page.
    """

    group: Group
    does: str
    target: str
    shown: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureLauncher:
    """A place where processes run, of `--runner`: three functions of the feature.

    ``open`` takes what `gate.lab` gives it; ``read`` checks words of `--container`;
    ``examine`` says for the doctor what can be measured there.
    """

    open: str
    read: str
    examine: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureSource:
    """Benchmarks that a check measures in the place of a suite, as `--NAME WORD …` asks.

    ``open`` names a context manager: called with the root of the repository, the words, the
    options of the measurement, ``setup`` (the command that makes a side ready) and ``notify``, it
    provides these options with a suite of `OUTSIDE_SUITES`. ``plan`` names a function that returns
    what a table `[[suites.X.NAME]]` collects in a checkout, where there are such tables.
    """

    metavar: str
    does: str
    open: str
    plan: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """What a folder adds to the core.

    ``commands`` by name; ``functions`` of the Python API, as `ci_perf.NAME`; ``documents`` of which
    `ci-perf schema` writes the JSON Schema; ``launchers`` by what `--runner` calls them;
    ``sources`` by their option of `ci-perf check`; ``formats`` that `reads` may name, each with a
    function from a path to `WrittenNumbers` by name, which raises ValueError.

    A feature may also say why rows moved. ``after_pairs`` makes what profiles both sides of them,
    by the open session and ``traces``; its ``pairs`` are kept in the run. ``profiler`` is called by
    such a launch, in the place of timing. ``after_judging`` returns a comparison with what is
    found, ``section`` its blocks of a report, and ``line_notes`` what is shown at lines of the
    head. ``history_lines`` returns lines for the page of a history, of the current folder.
    ``find_failure`` says why a workload fails by itself, where its first launch could not end it.
    """

    commands: Mapping[str, FeatureCommand] = field(default_factory=dict)
    functions: Mapping[str, str] = field(default_factory=dict)
    documents: Mapping[str, str] = field(default_factory=dict)
    launchers: Mapping[str, FeatureLauncher] = field(default_factory=dict)
    sources: Mapping[str, FeatureSource] = field(default_factory=dict)
    formats: Mapping[str, str] = field(default_factory=dict)
    after_pairs: str = ""
    profiler: str = ""
    after_judging: str = ""
    section: str = ""
    line_notes: str = ""
    history_lines: str = ""
    find_failure: str = ""


@functools.cache
def find_features() -> dict[str, Feature]:
    """Return the features that this installation has, by the names of their folders."""
    folders = pkgutil.iter_modules([str(Path(__file__).parent / "features")])
    modules = {
        each.name: importlib.import_module(f"ci_perf.features.{each.name}") for each in folders
    }
    return {name: module.FEATURE for name, module in modules.items()}


def find_commands() -> dict[str, FeatureCommand]:
    """Return the commands of all features, by name."""
    return _join(feature.commands for feature in find_features().values())


def find_documents() -> dict[str, str]:
    """Return where the documents of all features are, by the names of their schemas."""
    return _join(feature.documents for feature in find_features().values())


def find_launchers() -> dict[str, FeatureLauncher]:
    """Return the launchers of all features, by what `--runner` calls them."""
    return _join(feature.launchers for feature in find_features().values())


def find_sources() -> dict[str, FeatureSource]:
    """Return what all features measure in the place of a suite, by the name of its option."""
    return _join(feature.sources for feature in find_features().values())


def find_formats() -> dict[str, str]:
    """Return the functions that read what benchmarks write, by the name of the format."""
    return _join(feature.formats for feature in find_features().values())


def find_targets(moment: Moment) -> list[str]:
    """Return what features name in this field of `Feature`."""
    targets = (getattr(feature, moment) for feature in find_features().values())
    return [target for target in targets if target]


def _join(tables: Iterable[Mapping[str, T]]) -> dict[str, T]:
    return {name: each for table in tables for name, each in table.items()}


def find_function(name: str) -> Any:  # noqa: ANN401  any function of the Python API
    """Return the function of the Python API that a feature adds. Raises AttributeError."""
    functions = _join(feature.functions for feature in find_features().values())
    if name not in functions:
        raise AttributeError(f"module 'ci_perf' has no attribute {name!r}")
    return load(functions[name])


def load(target: str) -> Any:  # noqa: ANN401  whatever a feature names
    """Import what "module:attribute" names."""
    module, _, attribute = target.partition(":")
    return getattr(importlib.import_module(module), attribute)
