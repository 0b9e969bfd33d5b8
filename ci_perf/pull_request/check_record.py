"""What our comment remembers of earlier checks of a pull request: how many, and what pairs said.

Only a job with a token writes it and reads it, so no measured code can say that alpha was spent, or
that a regression was cleared.
"""

import base64
import hashlib
import zlib
from collections.abc import Mapping
from pathlib import Path

import msgspec

from ci_perf.api_types import Notify
from ci_perf.errors import CiPerfError, RefusedError
from ci_perf.github import actions, report_comment
from ci_perf.github.client import Access, Client
from ci_perf.judging import earlier_checks
from ci_perf.model.base import Count, Name, Struct, Text
from ci_perf.model.comparison import Change, Comparison, Verdict
from ci_perf.model.run import Checks, Paired, PairVerdict, Run
from ci_perf.system import files

# A comment has room for them, and nobody goes back to older commits.
_MOST_RUNS = 10
_MOST_ROWS = 100
_MOST_BYTES = 6_000
Said = dict[str, dict[str, PairVerdict]]


class RecordedRun(Struct, frozen=True, kw_only=True):
    """A run that tested pairs of two commits. ``pairs`` has a digest of those of each workload."""

    run: Name
    check: Count
    head: Text
    base: Text
    pairs: dict[Name, Text]
    said: dict[Name, dict[Name, PairVerdict]]


class CheckRecord(Struct, frozen=True, kw_only=True):
    """How many checks have ``tested`` pairs, and the newest runs of them, oldest first."""

    tested: Count = 0
    runs: tuple[RecordedRun, ...] = ()

    def before(self, run: str) -> int:
        """Return how many checks tested pairs before this run, which may be recorded already."""
        own = self.find(run)
        return self.tested if own is None else own.check - 1

    def find(self, run: str) -> RecordedRun | None:
        """Return what is recorded of a run."""
        return next((known for known in self.runs if known.run == run), None)


# What a comment remembers, by machine.
Records = dict[Name, CheckRecord]


def decode(text: str | None) -> Records | None:
    """Return the records in a comment, by machine; `None` where they are damaged or removed."""
    if not text:
        return {} if text == "" else None
    try:
        packed = base64.urlsafe_b64decode(text)
        data = zlib.decompressobj().decompress(packed, 100 * _MOST_BYTES)
        return msgspec.json.decode(data, type=Records)
    except (ValueError, zlib.error, msgspec.MsgspecError):
        return None


def encode(records: Records) -> str:
    """Return records as one word; the oldest runs are left out where it would be too long."""
    while records:
        packed = zlib.compress(msgspec.json.encode(records), 9)
        text = base64.urlsafe_b64encode(packed).decode()
        longest = max(records, key=lambda machine: len(records[machine].runs))
        record = records[longest]
        if len(text) <= _MOST_BYTES or not record.runs:
            return text
        records = records | {longest: msgspec.structs.replace(record, runs=record.runs[1:])}
    return ""


def add_check(
    record: CheckRecord, comparison: Comparison, *, pairs: Mapping[str, str]
) -> CheckRecord:
    """Return the record with a check, if it has tested pairs and is not recorded yet.

    `pairs` are the digests of its pairs, as by `digest_pairs`.
    """
    how, run = comparison.interleaved, comparison.head.run
    if how is None or not how.suspects or not run or record.find(run):
        return record
    said = _first_rows(earlier_checks.said_by_pairs(comparison))
    for workload, metric in find_held(record, comparison):
        said.setdefault(workload, {})[metric] = "regressed"
    mine = RecordedRun(
        run=run,
        check=record.tested + 1,
        head=comparison.head.source.commit,
        base=how.source.commit,
        pairs=dict(pairs),
        said=said,
    )
    return CheckRecord(tested=mine.check, runs=(*record.runs, mine)[-_MOST_RUNS:])


def find_held(record: CheckRecord, comparison: Comparison) -> list[tuple[str, str]]:
    """Name what an earlier run of the same commits has proven, and this comparison leaves out.

    Not what pairs of that run, judged together with others, have answered by now. A run that names
    no base is of any: what it does not say takes nothing back.
    """
    head, how = comparison.head, comparison.interleaved
    last: dict[tuple[str, str], RecordedRun] = {}
    verdicts: dict[tuple[str, str], PairVerdict] = {}
    for known in record.runs:
        is_same_base = how is None or known.base == how.source.commit
        if known.head == head.source.commit and is_same_base and known.run != head.run:
            for workload, metrics in known.said.items():
                for metric, said in metrics.items():
                    last[workload, metric], verdicts[workload, metric] = known, said
    judged = comparison.spending.earlier if comparison.spending else {}
    still = {
        (row.workload, row.metric)
        for row in comparison.rows
        if isinstance(row, Change) and row.verdict is Verdict.REGRESSED
    }
    return [
        (workload, metric)
        for (workload, metric), known in last.items()
        if verdicts[workload, metric] == "regressed"
        and workload not in judged.get(known.run, ())
        and (workload, metric) not in still
    ]


def vouch_for(record: CheckRecord, run: Run) -> Run:
    """Return a run with the number that the record knows, and the earlier runs that it vouches for.

    The pairs of each workload must be those that were judged then, and what they said is what the
    comment says.
    """
    kept = []
    for earlier in run.earlier:
        known = record.find(earlier.run)
        if known is None:
            continue
        paired = tuple(
            each for each in earlier.paired if known.pairs.get(each.workload) == _digest(each)
        )
        if paired:
            kept.append(
                msgspec.structs.replace(earlier, check=known.check, said=known.said, paired=paired)
            )
    return msgspec.structs.replace(
        run, checks=Checks(before=record.before(run.id)), earlier=tuple(kept)
    )


def digest_pairs(run: Run) -> dict[str, str]:
    """Return by workload what tells the pairs of a run from any others."""
    paired = earlier_checks.find_trusted_pairs(run)[:_MOST_ROWS]
    return {each.workload: _digest(each) for each in paired}


def _digest(paired: Paired) -> str:
    """Return 128 bits of the SHA-256 of pairs: a comment has no room for more."""
    return hashlib.sha256(msgspec.json.encode(paired)).hexdigest()[:32]


def _first_rows(said: Mapping[str, Mapping[str, PairVerdict]]) -> Said:
    """Keep regressions first, and no more rows than a comment has room for."""
    rows = sorted(
        (verdict != "regressed", workload, metric, verdict)
        for workload, metrics in said.items()
        for metric, verdict in metrics.items()
    )
    kept: Said = {}
    for _, workload, metric, verdict in rows[:_MOST_ROWS]:
        kept.setdefault(workload, {})[metric] = verdict
    return kept


class _Payload(msgspec.Struct):
    action: str = ""


def count_checks(environment: Mapping[str, str], key: str | None, *, notify: Notify) -> int | None:
    """Return how many checks the comment `key` remembers, of the machine that has most.

    `None` where nothing tells: there is no pull request, GitHub does not say, or the comment is
    missing although the pull request was not just opened.
    """
    try:
        return _count(environment, key)
    except CiPerfError as error:
        notify(f"earlier checks are not known: {error}")
        return None


def _count(environment: Mapping[str, str], key: str | None) -> int:
    path = environment.get("GITHUB_EVENT_PATH", "")
    payload = files.read_text(Path(path)) if path else ""
    event = actions.read_event(environment, payload)
    if not event.pull:
        raise RefusedError("this job is of no pull request")
    known = report_comment.read(Client(Access.from_job(environment)), event.pull, key)
    if known is None:
        action = msgspec.json.decode(payload, type=_Payload).action
        if event.run.attempt == 1 and action == "opened":
            return 0
        raise RefusedError(f"there is no comment of ours with the key {key or 'of any suite'!r}")
    records = decode(known.record)
    if records is None:
        raise RefusedError("what the comment remembers is damaged")
    return max((record.tested for record in records.values()), default=0)
