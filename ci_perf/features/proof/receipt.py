"""What `ci-perf prove` answers: a receipt that fits into a comment, at most 2 KB of JSON."""

from typing import Annotated, Literal

import msgspec

from ci_perf.model.base import SCHEMA_VERSION, Amount, Count, Name, Struct, SuiteName
from ci_perf.model.run import Tool
from ci_perf.report import units
from ci_perf.report.escape import Phrase, Sentence, Words
from ci_perf.report.tables import Block, Page, Table

# All of them together fit into 2 KB: one check at most does not hold.
MOST_CHARS, MOST_CHARS_THAT_HOLD = 100, 60
Short = Annotated[str, msgspec.Meta(max_length=MOST_CHARS)]
# In the order in which they are asked: the first that fails is the answer.
CheckName = Literal[
    "gate", "workload", "inputs", "result", "work", "claim", "waiting", "others", "seed", "clock"
]
_ASKS: dict[str, str] = {
    "gate": "nothing of the gate is changed",
    "workload": "workload files, parameters and items per step are equal",
    "inputs": "no file that may be an input is changed",
    "result": "losses and outputs agree",
    "work": "a step does its work",
    "claim": "the interval lies beyond the claim",
    "waiting": "the base does not wait for nothing",
    "others": "no other row that gates is worse or open",
    "seed": "losses and outputs agree with a second seed",
    "clock": "a clock outside of the process agrees",
}


class Check(Struct, frozen=True, kw_only=True):
    """One thing that has to hold, and what is known of it."""

    name: CheckName
    holds: bool
    detail: Short


class ClaimResult(Struct, frozen=True, kw_only=True):
    """What pairs say of a claim: how far the head lies below the base, and the interval of that.

    ``unit`` is "share" (of the base), or that of the metric. ``certainty`` is that of the interval:
    rows of a report share theirs in another way, so their intervals differ.
    """

    workload: Name
    metric: Name
    claimed: Amount
    gain: float
    low: float
    high: float
    unit: Literal["share", "s", "B"]
    pairs: Count
    certainty: Amount = 0.0


class Receipt(Struct, tag_field="type", tag="receipt", frozen=True, kw_only=True):
    """A claim of an optimisation, and whether everything holds that makes it true.

    ``checks`` end with the first that does not hold. ``because`` is the author's reason why a step
    does less work, or waits less. ``fingerprint`` is a digest of losses and outputs of the head
    with both seeds, empty where it computes none. ``open`` is what nobody could exclude.
    """

    schema_version: int = SCHEMA_VERSION
    tool: Tool
    holds: bool
    suite: SuiteName
    base: Name
    head: Name
    machine: Short
    measured_at: Short
    claims: tuple[ClaimResult, ...]
    checks: tuple[Check, ...]
    because: Short = ""
    fingerprint: Short = ""
    open: tuple[Short, ...] = ()


def build_page(receipt: Receipt) -> Page:
    """Say whether it is proven, then what was checked, then what stays open."""
    parts: list[Block] = [_headline(receipt)]
    if receipt.because:
        parts.append((Words("The author says why: "), Sentence(receipt.because)))
    parts.append(
        Table(
            heading=("what has to hold", "", "found"),
            left=("found",),
            rows=[
                (Words(_ASKS[each.name]), Words("✓" if each.holds else "✗"), Sentence(each.detail))
                for each in receipt.checks
            ],
        )
    )
    sides = (receipt.base[:12], Words(" → "), receipt.head[:12], Words(", suite "), receipt.suite)
    parts.append((*sides, Words(", on "), receipt.machine, Words(f", {receipt.measured_at}")))
    parts += [(Words("Not excluded: "), Sentence(each)) for each in receipt.open]
    return parts


def _headline(receipt: Receipt) -> Phrase:
    if not receipt.holds:
        last = receipt.checks[-1]
        return (Words(f"Not proven: {_ASKS[last.name]}? "), Sentence(last.detail))
    phrase: list[str] = [Words("Proven: ")]
    for position, claim in enumerate(receipt.claims):
        phrase += [Words("; ")] * bool(position)
        phrase += [claim.workload, Words(" needs ")]
        phrase += [Words(f"{describe_gain(claim)}, claimed {_show(claim, claim.claimed)}")]
    return tuple(phrase)


def describe_gain(claim: ClaimResult) -> str:
    """12.3 % less time [10.1, 14.4], 6 pairs."""
    what = "time" if claim.metric.startswith("step") else "memory"
    interval = f"[{_show(claim, claim.low)}, {_show(claim, claim.high)}]"
    pairs = units.render_count(claim.pairs, "pair")
    return f"{_show(claim, claim.gain)} less {what} {interval}, {pairs}"


def _show(claim: ClaimResult, gain: float) -> str:
    if claim.unit == "share":
        return f"{100 * gain:.1f} %".replace("-", units.MINUS)
    shown = units.seconds(gain) if claim.unit == "s" else units.size(gain)
    return str(shown)
