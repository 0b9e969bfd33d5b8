"""Compare machines by runs of one suite, and by the prices of their owner. Launches nothing."""

import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from ci_perf.baselines import layout
from ci_perf.errors import InvalidFileError, UsageError
from ci_perf.gate.compare import read_run
from ci_perf.judging import value
from ci_perf.judging.value import PricedClass
from ci_perf.model import codec
from ci_perf.model.environment import is_same
from ci_perf.model.hardware import Hardware, Price, Prices
from ci_perf.model.run import UNKNOWN_COMMIT, Run
from ci_perf.system import files

# After a quarter of a year, prices of machines have mostly moved.
_OLD_DAYS = 90


@dataclass(frozen=True, slots=True)
class _Labelled:
    label: str
    run: Run

    @property
    def machine(self) -> str:
        return layout.machine_key(self.run.environment.hard)


def compare(sources: Sequence[Run | Path], prices: Path | None, *, today: date) -> Hardware:
    """Compare the machines that these runs are of, in their order.

    Runs of one class of machines count together. Raises InvalidFileError (a run or prices.toml that
    does not say what it must say) and UsageError (no run, or runs of different suites or commits).
    """
    runs = [_Labelled(label, run) for run, label in map(read_run, sources)]
    if not runs:
        raise UsageError("expected RUN.json..., found none: `ci-perf run` writes one")
    _check_alike(runs)
    priced = None if prices is None else read_prices(prices, today)
    if priced is not None and prices is not None:
        _check_known(priced, runs, prices)
    classes = list(_classes(runs, priced, today))
    return value.of(
        classes,
        currency=priced.currency if priced else "",
        notes=tuple(_notes(runs, classes, prices)),
    )


def read_prices(path: Path, today: date) -> Prices:
    """Read prices.toml. Raises InvalidFileError that names file and place."""
    try:
        data = tomllib.loads(files.read_text(path))
    except RecursionError:
        raise InvalidFileError(f"{path}: expected TOML, found it nested too deep") from None
    except ValueError as error:
        raise InvalidFileError(f"{path}: expected TOML, found: {error}") from None
    prices = codec.convert(_with_days_as_text(data), Prices, name=str(path))
    for name, price in prices.price.items():
        place = f"{path}: $.price.{name}.as_of"
        try:
            days = _age_days(price, today)
        except ValueError:
            raise InvalidFileError(f"{place}: expected a day, found {price.as_of!r}") from None
        if days < 0:
            raise InvalidFileError(f"{place}: expected a day that has come, found {price.as_of}")
    return prices


def _age_days(price: Price, today: date) -> int:
    return (today - date.fromisoformat(price.as_of)).days


def _with_days_as_text(data: object) -> object:
    """TOML has dates of its own; a day may stand there with or without quotes."""
    if isinstance(data, dict):
        return {name: _with_days_as_text(each) for name, each in data.items()}
    return data.isoformat() if type(data) is date else data


def _check_alike(runs: Sequence[_Labelled]) -> None:
    """Raise UsageError for runs whose numbers mean different things, or that are there twice."""
    first, seen = runs[0], {runs[0].run.id: runs[0].label}
    for each in runs[1:]:
        if each.run.suite != first.run.suite:
            raise UsageError(
                f"{each.label}: expected a run of the suite {first.run.suite}, as "
                f"{first.label} is, found one of {each.run.suite}"
            )
        commits = {first.run.source.commit, each.run.source.commit} - {UNKNOWN_COMMIT}
        if len(commits) > 1:
            raise UsageError(
                f"{each.label}: expected a run of the commit {first.run.source.commit[:12]}, as "
                f"{first.label} is, found one of {each.run.source.commit[:12]}: other code has "
                "another speed; measure the same commit on each machine"
            )
        if each.run.id in seen:
            raise UsageError(
                f"{each.label}: expected a run that is not there yet, found run {each.run.id} of "
                f"{seen[each.run.id]}"
            )
        seen[each.run.id] = each.label


def _check_known(prices: Prices, runs: Sequence[_Labelled], path: Path) -> None:
    """Raise InvalidFileError for a price of machines that no run is of."""
    known = sorted({each.machine for each in runs})
    for name, price in prices.price.items():
        if (price.machine or name) not in known:
            place = f"$.price.{name}.machine" if price.machine else f"$.price.{name}"
            wanted = price.machine or name
            raise InvalidFileError(
                f"{path}: {place}: expected a class of machines of these runs, found {wanted!r}; "
                + codec.did_you_mean(wanted, known)
            )


def _classes(
    runs: Sequence[_Labelled], prices: Prices | None, today: date
) -> Iterator[PricedClass]:
    """Yield a class per machine, or one per price of it, in the order of the runs."""
    by_machine: dict[str, list[_Labelled]] = {}
    for each in runs:
        by_machine.setdefault(each.machine, []).append(each)
    for machine, own in by_machine.items():
        hard = own[0].run.environment.hard
        for each in own[1:]:
            if not is_same(hard, each.run.environment.hard):
                raise UsageError(
                    f"{each.label}: expected a machine like that of {own[0].label}, found one of "
                    f"the same name {machine} whose hard facts differ; compare them in two calls"
                )
        of_machine: list[tuple[str, Price | None]] = [
            (name, price)
            for name, price in (prices.price.items() if prices else ())
            if (price.machine or name) == machine
        ]
        for name, price in of_machine or [(machine, None)]:
            yield PricedClass(
                name=name,
                machine=machine,
                hard=hard,
                runs=tuple(each.run for each in own),
                price=price,
                age_days=None if price is None else _age_days(price, today),
            )


def _notes(
    runs: Sequence[_Labelled], classes: Sequence[PricedClass], prices: Path | None
) -> Iterator[str]:
    old = [each for each in classes if each.age_days is not None and each.age_days > _OLD_DAYS]
    for each in old:
        assert each.price is not None
        yield (
            f"the price of {each.name} is of {each.price.as_of}, {each.age_days} days ago: see "
            "whether it still holds"
        )
    for each in classes:
        if prices is not None and each.price is None:
            yield f"{prices} has no price of {each.name}"
    for labelled in runs:
        if labelled.run.source.dirty:
            yield f"{labelled.label} was measured with uncommitted changes"
        if labelled.run.source.commit == UNKNOWN_COMMIT:
            yield f"{labelled.label} does not know its commit: it may be of other code"
        if labelled.run.validity.reasons:
            codes = ", ".join(sorted({each.code for each in labelled.run.validity.reasons}))
            yield f"{labelled.label}: the machine was not at its best ({codes})"
