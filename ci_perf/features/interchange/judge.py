"""`ci_perf.judge`: judge samples of any harness, or files that a harness wrote."""

import functools
from collections.abc import Sequence
from pathlib import Path

from ci_perf.api_types import Location, Notify, say_nothing
from ci_perf.errors import InvalidFileError, UsageError
from ci_perf.features.interchange import importers
from ci_perf.features.interchange.importers import Merged
from ci_perf.gate import arguments, check_fail_on
from ci_perf.judging import samples as judging
from ci_perf.model.comparison import Comparison
from ci_perf.model.samples import Samples
from ci_perf.model.suite import FailOn
from ci_perf.system import files

# More names than this make a label that nobody reads.
_NAMED = 3


def judge(
    *samples: Samples | Location,
    tool: str | None = None,
    base: Location | Sequence[Location] = (),
    head: Location | Sequence[Location] = (),
    pairs: Sequence[tuple[Location, Location]] = (),
    limit: float | None = None,
    fail_on: FailOn = "proven",
    notify: Notify | None = None,
) -> Comparison:
    """Judge samples that any harness has recorded; see `ci-perf judge`.

    `samples` are documents of our own format, or files of them. With `tool` (such as "pyperf"),
    `base`, `head` and `pairs` are files that this harness wrote instead. Give all files of a change
    in one call: the chance of a false alarm, 5 %, is shared within a call. `limit` is the
    smallest slowdown to find, as a share. Raises InvalidFileError and UsageError.
    """
    check_fail_on(fail_on)
    if limit is not None and not 0 < limit <= 1:
        raise UsageError(f"limit: expected a share above 0 and at most 1, found {limit!r}")
    of_base, of_head = arguments.paths_of(base), arguments.paths_of(head)
    of_pairs = [(Path(old), Path(new)) for old, new in pairs]
    if tool is None:
        if of_base or of_head or of_pairs:
            raise UsageError("--base, --head, --pair: expected --from TOOL for these files")
        if not samples:
            raise UsageError("expected SAMPLES, or --from TOOL; see `ci-perf judge --help`")
        named = [_read_samples(source, number) for number, source in enumerate(samples, 1)]
        label = _label([name for name, _ in named])
        joined = importers.join(named)
        return judging.judge(joined, base=label, head=label, limit=limit, fail_on=fail_on)
    if tool not in (known := importers.find_tools()):
        raise UsageError(f"--from: expected one of {', '.join(known)}, found {tool!r}")
    if samples or bool(of_base) != bool(of_head) or not (of_head or of_pairs):
        raise UsageError(
            f"--from {tool}: expected --base FILE and --head FILE, or --pair BASE HEAD, or "
            "all three, and no SAMPLES"
        )
    merged = _read_harness(tool, of_base, of_head, of_pairs)
    for benchmark in merged.left_out:
        (notify or say_nothing)(
            f"{benchmark.document}: {benchmark.benchmark}: left out: {benchmark.reason}"
        )
    return judging.judge(
        merged.samples,
        failed=merged.failed,
        base=_label([*of_base, *(old for old, _ in of_pairs)]),
        head=_label([*of_head, *(new for _, new in of_pairs)]),
        limit=limit,
        fail_on=fail_on,
    )


def _read_harness(
    tool: str, base: Sequence[Path], head: Sequence[Path], pairs: Sequence[tuple[Path, Path]]
) -> Merged:
    read = functools.partial(importers.read, tool)
    try:
        return importers.merge(
            list(map(read, base)),
            list(map(read, head)),
            [(read(old), read(new)) for old, new in pairs],
        )
    except InvalidFileError as error:
        raise InvalidFileError(f"--from {tool}: {error}") from None


def _read_samples(source: Samples | Location, number: int) -> tuple[str, Samples]:
    if isinstance(source, Samples):
        return f"samples {number}", source
    return str(source), files.read(Path(source), Samples)


def _label(names: Sequence[Path | str]) -> str:
    """Name the first few files: the others are known to whoever gave them."""
    more = len(names) - _NAMED
    return ", ".join(map(str, names[:_NAMED])) + (f" and {more} more" if more > 0 else "")
