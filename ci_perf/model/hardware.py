"""Prices of machines (prices.toml), and what machines do for them: `ci-perf hardware`."""

from typing import Annotated

import msgspec

from ci_perf.model.base import (
    SCHEMA_VERSION,
    AtLeastOne,
    Count,
    Finite,
    Name,
    NameOrEmpty,
    Struct,
    SuiteName,
    Text,
)
from ci_perf.model.environment import Machine
from ci_perf.model.run import Source, Tool

# ISO 4217, or what an owner counts in: "USD", "EUR".
Currency = Annotated[str, msgspec.Meta(pattern=r"^[A-Z]{3}(?!\n)$")]
# A day as ISO 8601 has it.
Day = Annotated[str, msgspec.Meta(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}(?!\n)$")]
# Less than a millionth is none; more than a million an hour is a typing error.
PerHour = Annotated[float, msgspec.Meta(ge=1e-6, le=1e6)]


class Price(Struct, frozen=True, kw_only=True):
    """What an hour of one machine of a class costs, who says so, and when it was so.

    ``machine`` names the class of machines as its folder of baselines does; empty where the price
    has that name itself.
    """

    per_hour: PerHour
    as_of: Day
    source: Annotated[str, msgspec.Meta(min_length=1, max_length=500)]
    machine: NameOrEmpty = ""


class Prices(Struct, frozen=True, kw_only=True):
    """The whole of prices.toml: the owner's, never that of a pull request."""

    schema_version: int = SCHEMA_VERSION
    currency: Currency
    price: Annotated[dict[Name, Price], msgspec.Meta(min_length=1)]


class Estimate(Struct, frozen=True, kw_only=True):
    """A value, and where it lies with 95 % certainty; `None` where one launch shows no range."""

    value: Finite
    low: Finite | None = None
    high: Finite | None = None


class HardwareClass(Struct, frozen=True, kw_only=True):
    """Machines of one kind at one price, and their order by the whole suite.

    ``machine`` is what the runs say, ``launches`` and ``runs`` count what was measured.
    ``speed`` is the geometric mean of the items per second over the workloads that all classes have
    measured, relative to the first class. ``value`` is that per unit of money, relative to the
    first class with a price. A rank counts the classes that are surely better, and one; `None`
    where no workload is shared, or no price known. ``age_days`` is that of the price.
    """

    name: Name
    machine: Text
    hard: Machine
    runs: Count
    launches: Count
    price: Price | None = None
    age_days: Count | None = None
    speed: Estimate | None = None
    speed_rank: AtLeastOne | None = None
    value: Estimate | None = None
    value_rank: AtLeastOne | None = None


class HardwareFigures(Struct, frozen=True, kw_only=True):
    """What one class does of one workload; its place is that of its class.

    ``per_money`` are items per unit of money, ``million_cost`` is what a million items cost.
    ``energy_j`` is per item, ``mfu`` the share of peak FLOP/s. ``absent`` says why there are no
    numbers.
    """

    items_per_s: Estimate | None = None
    rank: AtLeastOne | None = None
    energy_j: Finite | None = None
    mfu: Finite | None = None
    per_money: Estimate | None = None
    per_money_rank: AtLeastOne | None = None
    million_cost: Estimate | None = None
    absent: Text = ""


class HardwareWorkload(Struct, frozen=True, kw_only=True):
    """One workload on all classes, in the order of ``Hardware.classes``."""

    workload: Name
    item_unit: Name
    figures: tuple[HardwareFigures, ...]

    @property
    def is_shared(self) -> bool:
        """Whether all classes have measured it."""
        return all(each.items_per_s is not None for each in self.figures)


class Hardware(Struct, tag_field="type", tag="hardware", frozen=True, kw_only=True):
    """The same suite at the same commit on several machines, and what it costs there.

    ``classes`` stand in the order of the runs. ``currency`` is empty without prices.
    """

    schema_version: int = SCHEMA_VERSION
    tool: Tool
    suite: SuiteName
    source: Source
    currency: Text = ""
    classes: Annotated[tuple[HardwareClass, ...], msgspec.Meta(min_length=1)]
    workloads: tuple[HardwareWorkload, ...]
    notes: tuple[Text, ...] = ()
