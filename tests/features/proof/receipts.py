"""Builders of receipts."""

import msgspec

from ci_perf.features.proof.receipt import Check, ClaimResult, Receipt
from tests.runs import a_run


def a_receipt(*checks, **more):
    """A proof that a step needs a tenth less time."""
    claim = ClaimResult(
        workload="train_step",
        metric="step_time_s",
        claimed=0.05,
        gain=0.123,
        low=0.101,
        high=0.144,
        unit="share",
        pairs=6,
        certainty=0.9867,
    )
    plain = Receipt(
        tool=a_run().tool,
        holds=all(check.holds for check in checks),
        suite="smoke",
        base="b" * 40,
        head="a" * 40,
        machine="a quiet CPU, 8 cores",
        measured_at="2026-11-29T03:11:17Z",
        claims=(claim,),
        checks=checks or (Check(name="gate", holds=True, detail="no change"),),
    )
    return msgspec.structs.replace(plain, **more)
