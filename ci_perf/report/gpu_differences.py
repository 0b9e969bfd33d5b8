"""What a step makes the GPU do otherwise on the head: kernels, copies, waits, by name and count."""

from collections import Counter
from collections.abc import Iterator

from ci_perf.model.comparison import Change, Comparison, Verdict
from ci_perf.model.process import DeviceWork
from ci_perf.report import phrases, units
from ci_perf.report.escape import BOLD, Words
from ci_perf.report.phrases import Phrase
from ci_perf.report.tables import Block, Bullets

# Of a workload; what is left out is counted.
_MOST_LINES = 5
_MOST_WORKLOADS = 5
_NAME_CHARS = 80


def describe(comparison: Comparison) -> Iterator[Block]:
    """Yield what the GPU does on both sides, of the workloads with a row that moved or is open."""
    moved = {
        row.workload
        for row in comparison.rows
        if isinstance(row, Change) and row.verdict not in {Verdict.UNCHANGED, Verdict.NEW}
    }
    sides = [
        (each.workload, each.base.device_work, each.head.device_work)
        for each in comparison.profiles
        if each.workload in moved and each.base is not None
    ]
    known = [(workload, base, head) for workload, base, head in sides if base and head]
    for workload, base, head in known[:_MOST_WORKLOADS]:
        lines = list(_list_differences(base, head))
        if base.absent or head.absent:
            yield (*_title(workload), Words(" is not known: "), base.absent or head.absent)
        elif lines:
            yield (*_title(workload), Words(" differs:"))
            left = len(lines) - _MOST_LINES
            more = [(Words(f"{units.numbered(left, 'more difference')}"),)] if left > 0 else []
            yield Bullets([*lines[:_MOST_LINES], *more])
        else:
            same = units.numbered(head.launched, "kernel")
            order = " in the same order" if base.sequence == head.sequence else " in another order"
            yield (*_title(workload), Words(f": the same {same}{order}"))


def _title(workload: str) -> Phrase:
    return (BOLD, Words("What the GPU does in a step of "), workload, BOLD)


def _list_differences(base: DeviceWork, head: DeviceWork) -> Iterator[Phrase]:
    """Yield one line for each count that differs: totals first, then kernels by name."""
    for what, before, after in (
        ("kernels", base.launched, head.launched),
        ("waits for the GPU", base.host_waits, head.host_waits),
        ("CUDA graphs replayed", base.graph_replays, head.graph_replays),
        ("spilled registers", base.spills or 0, head.spills or 0),
    ):
        if before != after:
            yield (Words(f"{what}: {before:,} → {after:,}"),)
    for direction in sorted(base.copies.keys() | head.copies.keys()):
        both = [side.copies.get(direction) for side in (base, head)]
        if both[0] != both[1]:
            shown = [f"{c.count:,} ({units.size(c.bytes)})" if c else "none" for c in both]
            yield (Words("copies "), direction, Words(f": {shown[0]} → {shown[1]}"))
    before_by_name, after_by_name = _by_name(base), _by_name(head)
    names = before_by_name.keys() | after_by_name.keys()
    changed = [name for name in names if before_by_name[name] != after_by_name[name]]
    for name in sorted(changed, key=lambda n: (-abs(after_by_name[n] - before_by_name[n]), n)):
        yield (name, Words(f": {before_by_name[name]:,} → {after_by_name[name]:,}"))
    if not changed and base.launched == head.launched and base.kernels != head.kernels:
        yield (Words("the same kernels with other grids, blocks or shared memory"),)


def _by_name(work: DeviceWork) -> Counter[str]:
    counts: Counter[str] = Counter()
    for kernel in work.kernels:
        counts[shorten(kernel.name)] += kernel.count
    return counts


def shorten(name: str) -> str:
    """Return the name of a kernel without its type, template and parameters.

    "void at::native::reduce_kernel<512, 1>(int)" is "at::native::reduce_kernel".
    """
    plain = name.removeprefix("void ").replace("(anonymous namespace)", "anonymous")
    return plain.partition("<")[0].partition("(")[0][:_NAME_CHARS] or phrases.plain((name,))
