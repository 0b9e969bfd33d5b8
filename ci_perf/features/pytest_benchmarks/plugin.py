"""The plugin that pytest runs: the fixture `benchmark` and the markers of its two known plugins.

Theirs are blocked: their fixture would time the function itself. Their options, which may stand in
pytest.ini, mean nothing here and are taken away.
"""

import functools
import importlib
import importlib.util
import inspect
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

MARKERS = ("benchmark", "codspeed_benchmark")
# Options of theirs that take no value; all others of these prefixes do.
_PREFIXES = ("--benchmark-", "--codspeed")
_FLAGS = frozenset(
    {
        *("--benchmark-only", "--benchmark-skip", "--benchmark-disable", "--benchmark-enable"),
        *("--benchmark-disable-gc", "--benchmark-autosave", "--benchmark-save-data"),
        *("--benchmark-verbose", "--benchmark-quiet", "--codspeed"),
    }
)
# What would count, distribute or end the one test that is timed, by the module that brings it.
_OF_OTHERS = {
    "xdist": ("-n0",),
    "pytest_cov": ("--no-cov",),
    "pytest_timeout": ("--timeout=0",),
}
_REASON_CHARS = 300
# Runs a test again that fails, and keeps a thread, which would be missing in a forked process.
_RERUNS = "rerunfailures"


def run_pytest(words: Sequence[str], cache: str, measure: "Measure", *others: object) -> int:
    """Run pytest for what `words` name, with node ids relative to the current folder.

    Nothing is captured: what a test prints belongs to the launch. `cache` is a folder for what
    pytest keeps. Returns pytest's exit code.
    """
    arguments = list_arguments(str(Path.cwd()), cache, *words)
    return int(pytest.main(arguments, plugins=[BenchmarkPlugin(measure), *others]))


def list_arguments(root: str, cache: str, *words: str) -> list[str]:
    """Return the arguments of pytest: nothing counts, distributes or ends the test that is timed.

    Settings are replaced; no plugin of pytest's own is blocked, whose settings would be unknown.
    """
    of_others = [
        word
        for module, words_of_it in _OF_OTHERS.items()
        if importlib.util.find_spec(module) is not None
        for word in words_of_it
    ]
    shown = ("-s", "-q", "--no-header", "--maxfail=0", "--continue-on-collection-errors")
    settings = (f"cache_dir={cache}", "faulthandler_timeout=0")
    return [
        *words,
        *shown,
        f"--rootdir={root}",
        *(word for setting in settings for word in ("-o", setting)),
        *("-p", "no:benchmark", "-p", "no:codspeed"),
        *of_others,
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredCall:
    """What a test has its fixture measure.

    ``call`` is one round, whose result the test gets. ``as_written`` does all that the test asks
    for, rounds and iterations, and times nothing. ``reported_s`` returns the seconds of the latest
    round without what prepares it, where something does. ``extra_info`` may have metrics.
    """

    call: Callable[[], object]
    as_written: Callable[[], object]
    reported_s: Callable[[], Sequence[float]] | None = None
    extra_info: Mapping[str, Any] = field(default_factory=dict)


Measure = Callable[[MeasuredCall], object]
"""Measures, and returns the result of the last call."""


@dataclass(slots=True)
class _Round:
    """A target that is prepared, timed and cleaned up, again and again."""

    target: Callable[..., object]
    arguments: tuple[Sequence[Any], Mapping[str, Any]]
    setup: Callable[[], Any] | None
    teardown: Callable[..., object] | None
    latest_s: list[float] = field(default_factory=list)

    def run(self, iterations: int = 1) -> object:
        """Run one round; only the target is timed. Raises TypeError: two kinds of arguments."""
        args, kwargs = self.arguments
        if self.setup is not None and (made := self.setup()) is not None:
            if args or kwargs:
                raise TypeError("setup: expected no arguments of it beside args and kwargs")
            args, kwargs = made
        result: object = None
        start = time.perf_counter()
        for _ in range(iterations):
            result = self.target(*args, **kwargs)
        self.latest_s = [time.perf_counter() - start]
        if self.teardown is not None:
            self.teardown(*args, **kwargs)
        return result


class BenchmarkFixture:
    """The fixture `benchmark`, as tests of pytest-benchmark and pytest-codspeed use it.

    ``stats`` is `None`, and ``disabled`` true, as where pytest-benchmark times nothing itself.
    """

    stats = None
    enabled = False
    disabled = True

    def __init__(self, node: Any, measure: Measure) -> None:  # noqa: ANN401  an item of pytest
        self.name = node.name
        self.fullname = node.nodeid
        marker = node.get_closest_marker(MARKERS[0])
        self.group = marker.kwargs.get("group") if marker else None
        self.extra_info: dict[str, Any] = {}
        parameters = getattr(node, "callspec", None)
        self.params = parameters.params if parameters else None
        self.param = parameters.id if parameters else None
        self._measure = measure
        self._used_by = ""
        self.undo: list[Callable[[], object]] = []

    def __call__(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401  the test's
        """Measure a function, and return its result. Raises RuntimeError: used before."""
        self._use("benchmark(...)")
        has_arguments = bool(args or kwargs)
        call = functools.partial(function, *args, **kwargs) if has_arguments else function
        return self._measure(MeasuredCall(call=call, as_written=call, extra_info=self.extra_info))

    def pedantic(
        self,
        target: Callable[..., Any],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        setup: Callable[[], Any] | None = None,
        teardown: Callable[..., object] | None = None,
        rounds: int = 1,
        warmup_rounds: int = 0,
        iterations: int = 1,
    ) -> Any:  # noqa: ANN401  the test's
        """Measure a function that `setup` prepares; how often it runs is for the launch to say.

        Raises RuntimeError: used before; TypeError and ValueError as pytest-benchmark does.
        """
        self._use("benchmark.pedantic(...)")
        for name, value, least in (
            ("iterations", iterations, 1),
            ("rounds", rounds, 1),
            ("warmup_rounds", warmup_rounds, 0),
        ):
            if type(value) is not int or value < least:
                raise ValueError(
                    f"{name}: expected a whole number from {least} on, found {value!r}"
                )
        if setup is not None and iterations != 1:
            raise ValueError("setup: expected iterations=1 beside it")
        once = _Round(target, (args, kwargs or {}), setup, teardown)

        def run_all() -> object:
            results = [once.run(iterations) for _ in range(warmup_rounds + rounds)]
            return once.run() if iterations > 1 else results[-1]  # as pytest-benchmark does

        if setup is None and teardown is None:
            call = functools.partial(target, *args, **(kwargs or {}))
            measured = MeasuredCall(call=call, as_written=run_all, extra_info=self.extra_info)
        else:
            measured = MeasuredCall(
                call=once.run,
                as_written=run_all,
                reported_s=lambda: once.latest_s,
                extra_info=self.extra_info,
            )
        return self._measure(measured)

    def weave(self, target: Any, **options: Any) -> None:  # noqa: ANN401  aspectlib's
        """Measure the first call of a function that something else calls. Raises ImportError."""
        aspectlib = importlib.import_module("aspectlib")

        def measured(function: Callable[..., Any]) -> Callable[..., Any]:
            return lambda *args, **kwargs: self(function, *args, **kwargs)  # a method of its class

        self.undo.append(aspectlib.weave(target, measured, **options).rollback)

    patch = weave

    def _use(self, use: str) -> None:
        if self._used_by:
            raise RuntimeError(f"expected one use of `benchmark` in a test, found {self._used_by}")
        self._used_by = use


class BenchmarkPlugin:
    """Hands what a test measures to ``measure``."""

    def __init__(self, measure: Measure) -> None:
        self._measure = measure

    def pytest_load_initial_conftests(self, early_config: pytest.Config, args: list[str]) -> None:
        """Take away the options of the plugins that are blocked, and a plugin with its threads."""
        args[:] = _without_theirs(args)
        plugins = early_config.pluginmanager
        if plugins.has_plugin(_RERUNS):  # its options are known by now, and mean nothing
            plugins.unregister(name=_RERUNS)

    def pytest_addhooks(self, pluginmanager: Any) -> None:  # noqa: ANN401  pytest's
        """Let a conftest implement the hooks of pytest-benchmark: nobody calls them."""
        if importlib.util.find_spec("pytest_benchmark") is not None:
            pluginmanager.add_hookspecs(importlib.import_module("pytest_benchmark.hookspec"))

    def pytest_configure(self, config: pytest.Config) -> None:
        """Register the markers, so that strict ones pass."""
        for name in MARKERS:
            config.addinivalue_line("markers", f"{name}: a benchmark, which ci-perf measures")
        config.addinivalue_line("markers", "flaky: a test that is run again, but not by ci-perf")

    @pytest.fixture
    def benchmark(self, request: pytest.FixtureRequest) -> Iterator[BenchmarkFixture]:
        """Measure what the test gives it."""
        fixture = BenchmarkFixture(request.node, self._measure)
        yield fixture
        for undo in fixture.undo:
            undo()

    @pytest.fixture
    def benchmark_weave(self, benchmark: BenchmarkFixture) -> Callable[..., None]:
        """Measure what something else calls."""
        return benchmark.weave

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Measure marked tests before any other plugin runs them: the last one comes first."""
        session.config.pluginmanager.register(_MarkedTests(self._measure))


class _MarkedTests:
    """Hands tests to ``measure`` that are marked, and leave the fixture alone."""

    def __init__(self, measure: Measure) -> None:
        self._measure = measure

    @pytest.hookimpl(tryfirst=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> bool | None:
        """Measure a test as a whole; one with `async def` as its plugin runs it, or as none can."""
        if not is_marked(pyfuncitem) or "benchmark" in pyfuncitem.fixturenames:
            return None
        plugins = pyfuncitem.config.pluginmanager
        others = plugins.subset_hook_caller("pytest_pyfunc_call", [self])
        as_written = functools.partial(others, pyfuncitem=pyfuncitem)
        names = pyfuncitem._fixtureinfo.argnames  # noqa: SLF001  as pytest's own plugins do
        values = {name: pyfuncitem.funcargs[name] for name in names}
        is_plain = not inspect.iscoroutinefunction(pyfuncitem.obj)
        call = functools.partial(pyfuncitem.obj, **values) if is_plain else as_written
        self._measure(MeasuredCall(call=call, as_written=as_written))
        return True


def is_benchmark(item: pytest.Item) -> bool:
    """Whether a test may measure something."""
    return is_marked(item) or "benchmark" in getattr(item, "fixturenames", ())


def is_marked(item: pytest.Item) -> bool:
    """Whether a test is marked as a benchmark."""
    return any(item.get_closest_marker(name) is not None for name in MARKERS)


def shorten_error(shown: object) -> str:
    """Return the error of a traceback as pytest shows it, or the reason of a skip."""
    if isinstance(shown, tuple):
        return str(shown[-1])[:_REASON_CHARS]
    lines = str(shown).strip().splitlines()
    errors = [line.removeprefix("E").strip() for line in lines if line.startswith("E ")]
    return [*errors, *lines, ""][0][:_REASON_CHARS]


def _without_theirs(words: Sequence[str]) -> Iterator[str]:
    is_value = False
    for word in words:
        is_option = word.startswith(_PREFIXES)
        if not is_option and not (is_value and not word.startswith("-")):
            yield word
        is_value = is_option and "=" not in word and word not in _FLAGS
