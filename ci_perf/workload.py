"""The names that the author of a workload imports. No torch, no registry, no base class."""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ci_perf.measuring.turn_client import TurnTaker
    from ci_perf.model.process import WorkerResult
    from ci_perf.model.task import CommandTurn

Scalar = str | int | float | bool
PhaseMaker = Callable[[str], contextlib.AbstractContextManager[None]]

_UNWATCHED = contextlib.nullcontext()


def enter_unwatched(name: str) -> contextlib.AbstractContextManager[None]:
    """Enter a named phase of a step that nobody is watching: as good as nothing."""
    del name
    return _UNWATCHED


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What `build(context)` may use.

    ``device`` is a torch device string ("cpu", "cuda:0"); ``parameters`` are the ones of
    suite.toml for this entry; ``seed`` has already been given to random, numpy and torch;
    ``data_dir`` is where data sets are kept between processes (mounted, or generated once).
    ``rank`` and ``world_size`` are those of this process among the ranks that torchrun started.
    ``launch`` counts from 0.

    ``phase`` names parts of a step: `with context.phase("data"): batch = next(batches)`. Names
    that mean something to ci-perf are in docs/workloads.md; outside the one pass that watches
    them, entering one does nothing.
    """

    device: str
    parameters: Mapping[str, Scalar]
    seed: int
    data_dir: str
    rank: int = 0
    world_size: int = 1
    launch: int = 0
    phase: PhaseMaker = enter_unwatched


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """One program under measure.

    ``step`` is the timed callable: it does one unit of work and need not synchronise the device.
    ``items_per_step`` of ``item_unit`` ("image", "token", "sample") turn a step time into a
    throughput; of a rank among several, it is what all of them do together. ``items_per_epoch``,
    the size of the data set that is trained on, turns it into the time of an epoch. ``teardown``
    ends what ``build`` started (loader workers, say).

    ``loss`` returns the loss of the latest step as a float, ``output`` its result: a tensor, or
    sequences and mappings of them; `None` where it has none. Both are called only outside the timed
    region, and make the fingerprint by which a change of the numbers is noticed. ``varies`` says
    why they are not the same in every process on one machine (a sentence; empty when they are).

    ``precision`` names the peak that the step's FLOPs are compared with ("fp32", "tf32", "fp16",
    "bf16"; empty for none). ``parameter_count`` is the size of the model. ``local_step`` is the
    step of one rank without its communication, by which the ranks' skew is measured.

    ``is_fresh``: each step is a program of its own, so nothing warms up, and only the clock watches
    it. ``reported_s`` returns the step times, in seconds, that the latest step has reported itself:
    they stand for it, unless there are none. ``metrics`` returns numbers of your own, by names that
    begin with their kind: "time.ttft" and "tail.ttft_p99" in seconds, "rate.tokens" per second,
    "bytes.cache", "count.misses" and "score.accuracy", which are exact. It is called after the
    timed region. ``add_report`` adds to the result of the launch what
    else was reported. ``run_by_turn`` goes through one step beside a copy of it, and returns the
    step time of each turn.
    """

    step: Callable[[], object]
    items_per_step: float = 1
    item_unit: str = "step"
    items_per_epoch: float | None = None
    teardown: Callable[[], object] | None = None
    loss: Callable[[], float] | None = None
    output: Callable[[], object] | None = None
    varies: str = ""
    precision: str = ""
    parameter_count: int | None = None
    local_step: Callable[[], object] | None = None
    is_fresh: bool = False
    reported_s: Callable[[], Sequence[float]] | None = None
    metrics: Callable[[], Mapping[str, float]] | None = None
    add_report: "Callable[[WorkerResult], WorkerResult] | None" = None
    run_by_turn: "Callable[[CommandTurn, TurnTaker], list[float]] | None" = None
