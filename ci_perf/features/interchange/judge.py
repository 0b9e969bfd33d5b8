"""Judge samples of any harness, or files that a harness wrote."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ci_perf.errors import InvalidFileError, UsageError
from ci_perf.features.interchange import importers
from ci_perf.gate import Notify
from ci_perf.judging import samples
from ci_perf.model.comparison import Comparison
from ci_perf.model.samples import Samples
from ci_perf.model.suite import FailOn
from ci_perf.system import files

# More names than this make a label that nobody reads.
_NAMED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class HarnessFiles:
    """What a harness wrote: files of the base, of the head, and of pairs that took turns.

    ``tool`` is one of `importers.find_tools`, or `None` without any files.
    """

    tool: str | None = None
    base: tuple[Path, ...] = ()
    head: tuple[Path, ...] = ()
    pairs: tuple[tuple[Path, Path], ...] = ()


def judge(
    sources: Sequence[Samples | Path],
    harness: HarnessFiles,
    *,
    limit: float | None,
    fail_on: FailOn,
    notify: Notify,
) -> Comparison:
    """Judge samples, or files of them; or what a harness wrote instead, all files together.

    Raises InvalidFileError and UsageError.
    """
    if harness.tool is not None:
        _check(harness.tool, sources, harness)
        return _judge_harness(harness.tool, harness, limit=limit, fail_on=fail_on, notify=notify)
    if harness.base or harness.head or harness.pairs:
        raise UsageError("--base, --head, --pair: expected --from TOOL, which says who wrote them")
    if not sources:
        raise UsageError("expected SAMPLES, or --from TOOL; see `ci-perf judge --help`")
    named = [_read_samples(source, number) for number, source in enumerate(sources, 1)]
    label = _label([name for name, _ in named])
    return samples.judge(
        importers.join(named), base=label, head=label, limit=limit, fail_on=fail_on
    )


def _judge_harness(
    tool: str, harness: HarnessFiles, *, limit: float | None, fail_on: FailOn, notify: Notify
) -> Comparison:
    read = functools.partial(importers.read, tool)
    try:
        merged = importers.merge(
            list(map(read, harness.base)),
            list(map(read, harness.head)),
            [(read(old), read(new)) for old, new in harness.pairs],
        )
    except InvalidFileError as error:
        raise InvalidFileError(f"--from {tool}: {error}") from None
    for benchmark in merged.left_out:
        notify(f"{benchmark.document}: {benchmark.benchmark}: left out: {benchmark.reason}")
    return samples.judge(
        merged.samples,
        failed=merged.failed,
        base=_label([*harness.base, *(old for old, _ in harness.pairs)]),
        head=_label([*harness.head, *(new for _, new in harness.pairs)]),
        limit=limit,
        fail_on=fail_on,
    )


def _check(tool: str, sources: Sequence[Samples | Path], harness: HarnessFiles) -> None:
    if tool not in (known := importers.find_tools()):
        raise UsageError(f"--from: expected one of {', '.join(known)}, found {tool!r}")
    has_one_side = bool(harness.base) != bool(harness.head)
    if sources or has_one_side or not (harness.head or harness.pairs):
        raise UsageError(
            f"--from {tool}: expected --base FILE and --head FILE, or --pair BASE HEAD, or "
            "all three, and no SAMPLES"
        )


def _read_samples(source: Samples | Path, number: int) -> tuple[str, Samples]:
    if isinstance(source, Samples):
        return f"samples {number}", source
    return str(source), files.read(source, Samples)


def _label(names: Sequence[Path | str]) -> str:
    """Name the first few files: the others are known to whoever gave them."""
    more = len(names) - _NAMED
    return ", ".join(map(str, names[:_NAMED])) + (f" and {more} more" if more > 0 else "")
