"""Numbers for people: three significant digits and the unit that fits."""

import math
from collections.abc import Sequence

from ci_perf.model.metrics import Unit
from ci_perf.report.escape import Words

NOTHING = Words("\N{EN DASH}")
MINUS = "\N{MINUS SIGN}"

_SECONDS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
_BYTES = ((2.0**30, "GiB"), (2.0**20, "MiB"), (2.0**10, "KiB"), (1.0, "B"))
_JOULES = ((1e3, "kJ"), (1.0, "J"), (1e-3, "mJ"), (1e-6, "µJ"))
_RATES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))
_ROUNDING = 1e-9
# More per cent than this say nothing more, and break a table.
_MOST_PERCENT = 1_000_000
# A unit is the author's word; a longer or stranger one is shown as "items".
_MAX_UNIT_CHARS = 20


def value(number: float, unit: Unit | None) -> Words:
    """Show one value of a metric; `None` is a metric that this version does not know."""
    match unit:
        case Unit.SECOND:
            return seconds(number)
        case Unit.BYTE:
            return size(number)
        case Unit.SHARE:
            return share(number)
        case Unit.JOULE:
            return Words(_scale_number(number, _JOULES))
        case Unit.WATT | Unit.MEGAHERTZ:
            return Words(f"{_three_digits(number)} {unit.value}")
        case Unit.FLOP | Unit.FLOP_PER_SECOND | Unit.PER_SECOND:
            return Words(f"{_scale_number(number, _RATES)}{unit.value.removeprefix('1')}")
        case Unit.ITEM_PER_SECOND:
            return throughput(number, 1.0, "item") or Words("0 items/s")
        case Unit.COUNT | None:
            return count(number)


def seconds(number: float) -> Words:
    """41.2 ms."""
    return Words(_scale_number(number, _SECONDS))


def duration(number: float) -> Words:
    """4 min 10 s: how long something took that a person waited for. Seconds are whole."""
    whole = round(number)
    hours, minutes, rest = whole // 3600, whole // 60 % 60, whole % 60
    parts = ((hours, "h"), (minutes, "min"), (rest, "s"))
    shown = [f"{part} {name}" for part, name in parts if part]
    return Words(" ".join(shown[:2]) or "0 s")


def size(number: float) -> Words:
    """3.10 GiB; bytes are whole."""
    if abs(number) < 1024:
        return Words(f"{round(number)} B".replace("-", MINUS))
    return Words(_scale_number(number, _BYTES))


def share(number: float) -> Words:
    """94.2 % of the whole."""
    return Words(f"{_three_digits(100 * number)} %")


def render_share(number: float) -> Words:
    """12 % or 0.4 % of some hundred cases: more digits would be chance."""
    return Words("0 %" if number == 0 else f"{100 * number:.{0 if number >= 0.1 else 1}f} %")


def render_count(number: int, noun: str, plural: str = "") -> Words:
    """1 workload, 2 workloads; a noun of another plural brings it: 2 launches."""
    return Words(f"{number:,} {noun if number == 1 else plural or f'{noun}s'}")


def points(number: float) -> Words:
    """+5.0 points: how far two shares lie apart, in per cent of the whole."""
    text = f"{abs(100 * number):.1f} points"
    return Words(text if not text.strip("0. points") else ("+" if number > 0 else MINUS) + text)


def plain(number: float, other: float) -> Words:
    """Show a computed number with as many digits as it takes to tell it from `other`."""
    wanted = (d for d in (6, 9, 12) if f"{number:.{d}g}" != f"{other:.{d}g}")
    digits = 6 if number == other else next(wanted, 17)
    return Words(f"{number:.{digits}g}".replace("-", MINUS))


def count(number: float) -> Words:
    """12, or 1.5 where a median fell between two counts."""
    text = f"{number:,.0f}" if number == round(number) else significant(number)
    return Words(text.replace("-", MINUS))


def significant(number: float) -> str:
    """Write 0.00125, 1.5 or 12,346: three digits and no exponent; less than a billionth is 0."""
    if abs(number) >= 100:
        return f"{number:,.0f}"
    return f"{float(f'{number:.3g}'):.9f}".rstrip("0").rstrip(".")


def throughput(items: float, step_s: float, item_unit: str) -> Words:
    """1.24k images/s; empty for a step of no length."""
    if step_s <= 0 or items <= 0:
        return Words("")
    if item_unit == "flop":
        return Words(f"{_scale_number(items / step_s, _RATES)}FLOP/s")
    number = _scale_number(items / step_s, _RATES).replace(" ", "", 1)
    return Words(f"{number} {plural(item_unit)}/s")


def plural(item_unit: str) -> Words:
    """Images, patches, queries; a word that is not one simple word becomes "items"."""
    if not (item_unit.isascii() and item_unit.isalpha() and len(item_unit) <= _MAX_UNIT_CHARS):
        return Words("items")
    if item_unit.endswith(("tch", "sh", "ss", "x", "z")):
        return Words(item_unit + "es")
    if item_unit.endswith("y") and item_unit[-2:-1] not in set("aeiou"):
        return Words(item_unit[:-1] + "ies")
    return Words(item_unit if item_unit.endswith("s") else item_unit + "s")


def percent(share: float) -> Words:
    """Show a relative change: +4.2 %; a minus is a real one, as long as the plus."""
    return Words(f"{_render_signed_percent(share)} %")


def change(ratio: float | None, low: float | None = None, high: float | None = None) -> Words:
    """Show a ratio as a change, with its interval: +4.2 % [+3.1, +5.3]; `None`: from zero."""
    if ratio is None:
        return Words("from zero")
    text = percent(ratio - 1)
    if low is None or high is None:
        return text
    return Words(f"{text} [{_render_signed_percent(low - 1)}, {_render_signed_percent(high - 1)}]")


def difference(base: float, head: float, unit: Unit | None) -> Words:
    """Show how much more or less: +600 MiB, +2, ±0."""
    if head == base:
        return Words("±0")
    sign = "+" if head > base else MINUS
    return Words(sign + value(abs(head - base), unit))


def both(base: Words, head: Words) -> Words:
    """41.2 → 43.7 ms: a value on both sides; a unit that they share is written once."""
    if base == head:
        return base
    number, _, unit = base.rpartition(" ")
    is_shared = number and head.endswith(f" {unit}")
    return Words(f"{number if is_shared else base} → {head}")


def limit(share: float) -> Words:
    """5 %; "exact" where every difference counts."""
    if share <= 0:
        return Words("exact")
    number = 100 * share
    if number > _MOST_PERCENT:
        return Words(f"> {_MOST_PERCENT:,} %")
    return Words(f"{significant(number)} %")


def about(share: float) -> Words:
    """17 % of 0.167: two digits, for an estimate that has no more."""
    return limit(float(f"{share:.2g}"))


def round_up(share: float) -> Words:
    """12 % of 0.1163: two digits that are enough, where fewer would not be."""
    if share <= 0:
        return limit(share)
    digit = 10.0 ** (math.floor(math.log10(share)) - 1)
    # What a float adds to a round number is no reason to take the next one.
    return limit(math.ceil(share / digit - _ROUNDING) * digit)


def _render_signed_percent(share: float) -> str:
    number = 100 * share
    if abs(number) > _MOST_PERCENT:
        return f"> +{_MOST_PERCENT:,}" if number > 0 else f"< {MINUS}{_MOST_PERCENT:,}"
    decimals = 0 if abs(number) >= 100 else 1 if abs(number) >= 0.05 else 2
    text = f"{abs(number):,.{decimals}f}"
    if not text.strip("0."):
        return "0.0"
    return ("+" if number > 0 else MINUS) + text


def _scale_number(number: float, units: Sequence[tuple[float, str]]) -> str:
    """Take the largest unit in which the rounded number is at least one."""
    if number == 0:
        return f"0 {units[0][1]}"
    for scale, name in units:
        text = _three_digits(abs(number) / scale)
        if float(text) >= 1:
            return f"{MINUS if number < 0 else ''}{text} {name}"
    scale, name = units[-1]
    return f"{significant(number / scale)} {name}".replace("-", MINUS)


def _three_digits(number: float) -> str:
    if number <= 0:
        return "0"
    rounded = float(f"{number:.2e}")
    decimals = max(0, 2 - math.floor(math.log10(rounded)))
    return f"{number:.0f}" if decimals == 0 else f"{rounded:.{decimals}f}"
