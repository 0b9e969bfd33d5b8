"""A receipt begins with its answer, quotes the author, and fits into 2 KB."""

from typing import get_args

from ci_perf.features.proof.checks import check
from ci_perf.features.proof.receipt import CheckName, build_page
from ci_perf.model import codec
from ci_perf.report import tables
from tests.features.proof.receipts import a_receipt


def shown(receipt):
    return tables.markdown(build_page(receipt))


def test_a_proof_says_the_gain_its_interval_and_the_claim():
    text = shown(a_receipt())

    first = text.splitlines()[0]
    assert (
        first == "**Proven: `train_step` needs 12.3 % less time [10.1 %, 14.4 %], 6 pairs, "
        "claimed 5.0 %**"
    )
    assert "| nothing of the gate is changed | ✓ | `no change` |" in text


def test_what_does_not_hold_is_the_first_line():
    text = shown(
        a_receipt(check("gate", "no change", holds=True), check("work", "9 → 8 FLOPs", holds=False))
    )

    assert text.startswith("**Not proven: a step does its work? `9 → 8 FLOPs`**\n")


def test_the_reason_of_the_author_is_text():
    text = shown(a_receipt(because="[a](https://b.example) <img src=x>", open=("a sleep",)))

    assert "The author says why: `[a](https://b.example) <img src=x>`\n" in text
    assert "Not excluded: `a sleep`\n" in text


def test_the_longest_receipt_of_one_claim_fits_into_two_kilobytes():
    longest = a_receipt(
        *(check(name, "x" * 500, holds=True) for name in get_args(CheckName)),
        machine="m" * 60,
        fingerprint="f" * 16,
        open=("o" * 90,),
    )

    assert len(codec.encode(longest)) <= 2048
