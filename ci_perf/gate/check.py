"""Measure a suite and judge it by the committed baselines: once, or after each change of a file."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ci_perf.errors import CannotWriteError
from ci_perf.gate import Notify, compare, measure
from ci_perf.gate.measure import MeasureOptions, RunNotWrittenError
from ci_perf.model.comparison import Comparison
from ci_perf.model.run import Run
from ci_perf.model.suite import FailOn
from ci_perf.session import Listener
from ci_perf.system import git

# What git does not know yet counts where somebody writes it, not where a workload does.
_WRITTEN = (".py", ".toml")
_Stamps = dict[str, tuple[int, int] | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What was measured, and its verdict; ``trouble`` is why the run could not be written."""

    run: Run
    comparison: Comparison
    trouble: CannotWriteError | None = None


def check(
    options: MeasureOptions, *, fail_on: FailOn | None, notify: Notify, listener: Listener
) -> Checked:
    """Measure, and compare with the baselines. Raises as `measure.measure` does.

    The baselines can clear a change and raise a suspicion, and no more: what they do not clear is
    called a regression only with `options.against`.
    """
    compare.check_baselines(options.baselines, options.suite)
    trouble: RunNotWrittenError | None = None
    try:
        run = measure.measure(options, notify=notify, listener=listener)
    except RunNotWrittenError as error:
        # Minutes of measuring are worth their verdict.
        run, trouble = error.run, error
    label = str(options.run_output) if options.run_output else f"run {run.id}"
    comparison = compare.with_baselines(run, options, label=label, fail_on=fail_on, notify=notify)
    return Checked(run=run, comparison=comparison, trouble=trouble)


def changes(root: Path, *, wait: Callable[[], None]) -> Iterator[tuple[str, ...]]:
    """Yield nothing at once, then the files that have changed, each time that some have.

    Files are those that git tracks below `root`, and new ones in Python and TOML: so what a check
    or a workload writes starts no other check. What changes while the caller is busy is yielded
    next. `wait` is called between two looks; files count once a look finds them as they were.
    Raises CiPerfError: `root` is in no git repository.
    """
    known = _stamps(root)
    yield ()
    while True:
        wait()
        seen = _stamps(root)
        if seen == known:
            continue
        wait()
        if _stamps(root) == seen:
            names = seen.keys() | known.keys()
            changed = [name for name in names if seen.get(name) != known.get(name)]
            known = seen
            yield tuple(sorted(changed))


def _stamps(root: Path) -> _Stamps:
    """Return when each file was written, and its size; `None` for one that is gone."""
    tracked = _listed(root, "--cached")
    written = [
        name for name in _listed(root, "--others", "--exclude-standard") if name.endswith(_WRITTEN)
    ]
    return {name: _stamp(root / name) for name in (*tracked, *written)}


def _listed(root: Path, *which: str) -> list[str]:
    listed = git.read(root, "ls-files", "-z", *which)
    return [name.decode(errors="surrogateescape") for name in listed.split(b"\0") if name]


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size
