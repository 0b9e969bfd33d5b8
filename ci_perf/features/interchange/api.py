"""`ci_perf.judge` and `ci_perf.load`: what other tools wrote, and what notebooks read."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ci_perf.api_types import Location, Notify, say_nothing
from ci_perf.errors import UsageError

if TYPE_CHECKING:
    from ci_perf.features.interchange.notebook import Loadable, Loaded
    from ci_perf.model.comparison import Comparison
    from ci_perf.model.samples import Samples
    from ci_perf.model.suite import FailOn


def judge(
    *samples: "Samples | Location",
    tool: str | None = None,
    base: Location | Sequence[Location] = (),
    head: Location | Sequence[Location] = (),
    pairs: Sequence[tuple[Location, Location]] = (),
    limit: float | None = None,
    fail_on: "FailOn" = "proven",
    notify: Notify | None = None,
) -> "Comparison":
    """Judge samples that any harness has recorded; see `ci-perf judge`.

    `samples` are documents of our own format, or files of them. With `tool` (such as "pyperf"),
    `base`, `head` and `pairs` are files that this harness wrote instead. Give all files of a change
    in one call: the chance of a false alarm, 5 %, is shared within a call. `limit` is the loss of a
    time that must not pass unseen, as a share.
    """
    from ci_perf.features.interchange import judge as judging
    from ci_perf.gate import arguments, check_fail_on
    from ci_perf.model.samples import Samples

    check_fail_on(fail_on)
    if limit is not None and not 0 < limit <= 1:
        raise UsageError(f"limit: expected a share above 0 and at most 1, found {limit!r}")
    sources = [source if isinstance(source, Samples) else Path(source) for source in samples]
    harness = judging.HarnessFiles(
        tool=tool,
        base=arguments.paths_of(base),
        head=arguments.paths_of(head),
        pairs=tuple((Path(old), Path(new)) for old, new in pairs),
    )
    return judging.judge(
        sources, harness, limit=limit, fail_on=fail_on, notify=notify or say_nothing
    )


def load(source: "Loadable | Location") -> "Loaded":
    """Open a run or a comparison, or the file of one, in a notebook.

    The result has `.document`, `.to_frame()`, `.to_openmetrics()`, and shows itself as a table.
    """
    from ci_perf.features.interchange import notebook

    return notebook.load(source)
