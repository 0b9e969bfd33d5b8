"""The names that the author of a workload imports. No torch, no registry, no base class."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

Scalar = str | int | float | bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What `build(context)` may use.

    ``device`` is a torch device string ("cpu", "cuda:0"); ``parameters`` are the ones of
    suite.toml for this entry; ``seed`` has already been given to random, numpy and torch;
    ``data_dir`` is where data sets are kept between processes (mounted, or generated once).
    """

    device: str
    parameters: Mapping[str, Scalar]
    seed: int
    data_dir: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """One program under measure.

    ``step`` is the timed callable: it does one unit of work and need not synchronise the device.
    ``items_per_step`` of ``item_unit`` ("image", "token", "sample") turn a step time into a
    throughput. ``teardown`` ends what ``build`` started (loader workers, say). ``loss`` returns
    the loss of the latest step as a float; it is called only outside the timed region.
    """

    step: Callable[[], object]
    items_per_step: float = 1
    item_unit: str = "step"
    teardown: Callable[[], object] | None = None
    loss: Callable[[], float] | None = None
