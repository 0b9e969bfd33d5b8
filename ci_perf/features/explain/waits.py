"""Where the time of a step goes: how busy it is, and what it waits for, on both sides."""

from collections.abc import Iterator
from dataclasses import dataclass

from ci_perf.features.explain import limits, limits_report
from ci_perf.features.explain.model import LimitReason, StepLimits
from ci_perf.model.run import Run
from ci_perf.report import units
from ci_perf.report.escape import Sentence, Words
from ci_perf.report.page.pictures import Picture, Scale, Segment, Symbol
from ci_perf.report.phrases import Phrase

_HEIGHT = 24
_MIDDLE = 12.0
_ACROSS = Scale(0, 1, 2.0, 98.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One part of the time; ``picture`` has the shares of both sides."""

    title: Words
    values: Words
    picture: Picture


@dataclass(frozen=True, slots=True, kw_only=True)
class StepWaits:
    """What a step of one workload waits for, and what may be done about it in the head."""

    workload: str
    parts: tuple[Part, ...]
    sentences: tuple[Phrase, ...]


def list_waits(run: Run) -> list[StepWaits]:
    """Return the workloads that the run has profiled, each by its first pair."""
    return [
        StepWaits(
            workload=each.workload,
            parts=tuple(
                _parts(
                    limits.find_limits(each.pairs[0].base), limits.find_limits(each.pairs[0].head)
                )
            ),
            sentences=tuple(limits_report.describe_limits(limits.find_limits(each.pairs[0].head))),
        )
        if each.pairs
        else StepWaits(workload=each.workload, parts=(), sentences=((Sentence(each.trouble),),))
        for each in run.profiled
    ]


def _parts(base: StepLimits, head: StepLimits) -> Iterator[Part]:
    if head.absent or base.part != head.part:
        return
    works = "the GPU works" if head.part == "device" else "operators run"
    yield _part(Words(works), base.busy, head.busy)
    before, after = _shares(base), _shares(head)
    for reason in dict.fromkeys((*after, *before)):
        title = limits_report.reason_text(reason, head.part)
        yield _part(title, before.get(reason), after.get(reason))


def _shares(limits: StepLimits) -> dict[LimitReason, float]:
    return {limit.reason: limit.share for limit in limits.limits}


def _part(title: Words, base: float | None, head: float | None) -> Part:
    """Draw a share of the base and of the head; `None` is too small to be known."""
    shares = {"base": base, "head": head}
    places = [_ACROSS.place(share) for share in shares.values() if share is not None]
    values = units.both(_share(base), _share(head))
    return Part(
        title=title,
        values=values,
        picture=Picture(
            height=_HEIGHT,
            label=f"{title}: {values} of the time of a step",
            lines=(
                Segment(x1=2, y1=_MIDDLE, x2=98, y2=_MIDDLE, kind="divide"),
                Segment(x1=min(places), y1=_MIDDLE, x2=max(places), y2=_MIDDLE, kind="interval"),
            ),
            marks=tuple(
                Symbol(
                    x=_ACROSS.place(share), y=_MIDDLE, shape="base" if side == "base" else "head"
                )
                for side, share in shares.items()
                if share is not None
            ),
        ),
    )


def _share(share: float | None) -> Words:
    return Words("little") if share is None else units.share(share)
