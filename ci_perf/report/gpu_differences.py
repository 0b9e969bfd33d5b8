"""What the GPU does otherwise on the head, by name and count."""

from collections import Counter
from collections.abc import Iterator

from ci_perf.model.comparison import Comparison, Uncompared, Verdict
from ci_perf.model.process import DeviceWork
from ci_perf.report import generated_code, phrases, units
from ci_perf.report.escape import BOLD, Phrase, Words
from ci_perf.report.tables import Block, Bullets

_MOST_WORKLOADS = 5
_NAME_CHARS = 80


def describe(comparison: Comparison) -> Iterator[Block]:
    """Yield what the GPU does on both sides, and the kernels that torch.compile has generated.

    Of the workloads with a row that moved or is open.
    """
    moved = {
        row.workload
        for row in comparison.rows
        if not isinstance(row, Uncompared) and row.verdict is not Verdict.UNCHANGED
    }
    known = [each for each in comparison.profiles if each.workload in moved and each.base]
    for each in known[:_MOST_WORKLOADS]:
        if each.base and each.base.device_work and each.head.device_work:
            before, after = each.base.device_work, each.head.device_work
            order = "in the same order" if before.sequence == after.sequence else "in another order"
            yield from _tell(
                (BOLD, Words("What the GPU does in a step of "), each.workload, BOLD),
                before.absent or after.absent,
                list(_list_differences(before, after)),
                Words(" differs:"),
                Words(f": the same {units.render_count(after.launched, 'kernel')} {order}"),
            )
        if code := generated_code.compare(each):
            title = BOLD, Words("Code that torch.compile generates for "), each.workload, BOLD
            counts = Words(f": {generated_code.count([code.pairs])}")
            yield from _tell(title, code.absent, code.differences, counts, counts)


def _tell(
    title: Phrase, absent: str, lines: list[Phrase], differs: Words, same: Words
) -> Iterator[Block]:
    if absent:
        yield (*title, Words(" is not known: "), absent)
    elif lines:
        yield (*title, differs)
        yield Bullets(generated_code.cut(lines, generated_code.MOST_LINES, "difference"))
    else:
        yield (*title, same)


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
