"""What a node has left, read as if a stranger had written it: size, links, nonce, unit, content."""

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ci_perf.errors import InvalidFileError
from ci_perf.fleet.node import RECEIPT, RUN
from ci_perf.judging import merging
from ci_perf.judging.merging import ShardRun
from ci_perf.model import codec
from ci_perf.model.fleet import Attempt, Expectation, Receipt
from ci_perf.model.node_check import DocumentType, NodeRefusal
from ci_perf.model.run import Run
from ci_perf.model.shards import WorkPlan
from ci_perf.report.units import numbered
from ci_perf.system import files, lock, scratch

# `ci-perf run`: 3 says that a workload failed, which the run records.
_HAS_RUN = frozenset({0, 3})
_MOST_OUTPUT_LINES = 5
# A stranger's sentence must fit into the journal, or nobody could go on with it.
_MOST_REASON_CHARS = 4_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a run must say of itself: `plan` has the unit of the attempt and no other.

    `is_screen`: it must have no pairs.
    """

    plan: WorkPlan
    expect: Expectation
    is_screen: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Usable:
    """A run of the unit, as it was read: whatever happens to the file later."""

    run: Run
    duration_s: float
    said: str = ""


@dataclass(frozen=True, slots=True)
class Unusable:
    """There is a result, and it is of no use: another attempt would not be better."""

    reason: str


@dataclass(frozen=True, slots=True)
class WrongNode:
    """The node is not of its class."""

    reason: str


Outcome = Usable | Unusable | WrongNode


def read(folder: Path, attempt: Attempt, wanted: Wanted) -> Outcome | None:
    """Return what an attempt has left in its folder; `None` before its command has ended."""
    try:
        with _opened(folder) as opened:
            receipt = opened.read(RECEIPT, Receipt)
            if receipt is None:
                return None
            if (receipt.nonce, receipt.unit) != (attempt.nonce, attempt.unit):
                return Unusable(f"{RECEIPT}: expected that of this attempt, found another's")
            run = _result(opened) if receipt.exit_code in _HAS_RUN else None
    except InvalidFileError as error:
        return Unusable(f"its result is refused: {error}"[:_MOST_REASON_CHARS])
    if run is None:
        return Unusable(_ended(receipt)[:_MOST_REASON_CHARS])
    if isinstance(run, NodeRefusal):
        return _wrong_node(run.reason)
    if refusal := _refusal(run, wanted):
        return Unusable(f"its result is refused: {refusal}"[:_MOST_REASON_CHARS])
    if difference := wanted.expect.difference(run.environment.hard):
        return _wrong_node(difference)
    failures = f"{numbered(len(run.failed), 'workload')} failed" if run.failed else ""
    return Usable(run=run, duration_s=receipt.duration_s, said=failures)


def _result(opened: scratch.Scratch) -> Run | NodeRefusal | None:
    """Return what stands where the run belongs. Raises InvalidFileError."""
    data = opened.read_bytes(RUN, limit=files.MAX_BYTES)
    if data is None:
        return None
    if codec.decode(data, DocumentType, name=RUN).type == "node_refusal":
        return codec.decode(data, NodeRefusal, name=RUN)
    return codec.decode(data, Run, name=RUN)


def _wrong_node(why: str) -> WrongNode:
    return WrongNode(f"the node is not of its class: {why}"[:_MOST_REASON_CHARS])


@contextlib.contextmanager
def _opened(folder: Path) -> Iterator[scratch.Scratch]:
    """Open the folder of an attempt, which may be a link by now. Raises InvalidFileError."""
    try:
        handle = lock.open_folder(folder)
    except OSError as error:
        raise InvalidFileError(f"{folder.name}: cannot be read: {error.strerror}") from None
    try:
        yield scratch.Scratch(folder, handle)
    finally:
        os.close(handle)


def _refusal(run: Run, wanted: Wanted) -> str:
    """Say in what a run is not that of the unit; empty if in nothing."""
    (unit,) = wanted.plan.units
    if missing := sorted({*unit.workloads} - {*run.workloads()}):
        return f"{RUN}: expected all workloads of the unit, found none for {', '.join(missing)}"
    if wanted.is_screen and run.interleaved is not None and run.interleaved.pairs:
        return f"{RUN}: expected no pairs in the first of two waves, found {run.interleaved.pairs}"
    try:
        # What could not be merged later is refused now, and stops no other unit.
        merging.merge(wanted.plan, [ShardRun(label=RUN, run=run)])
    except InvalidFileError as error:
        return str(error)
    return ""


def _ended(receipt: Receipt) -> str:
    code = receipt.exit_code
    how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
    lines = receipt.output.strip().splitlines()[-_MOST_OUTPUT_LINES:]
    said = ": " + " / ".join(line.strip() for line in lines) if lines else ""
    return f"its command {how} and left no run{said}"
