"""How much is trusted of a run that anybody may have made: its numbers.

Not trusted: which workloads it had to measure, against which commit it launched pairs, and which
workloads run the same program, unless this job can prove it: by the records that the base branch
has committed, and by the files that GitHub has of the head. Nothing of the head is run, imported or
checked out.
"""

from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from ci_perf.errors import ExitCode, RefusedError
from ci_perf.gate import Notify, claims
from ci_perf.github import pulls
from ci_perf.github.answers import PullRequest
from ci_perf.github.client import Client
from ci_perf.github.commits import GithubTree
from ci_perf.judging import signs
from ci_perf.model.comparison import Change, Code, Comparison, Verdict
from ci_perf.model.run import Checks, Run
from ci_perf.program.tree_sources import FolderTree
from ci_perf.program.trees import IncomparableError
from ci_perf.pull_request import baseline_changes, check_record
from ci_perf.pull_request.check_record import CheckRecord
from ci_perf.report.phrases import Phrase
from ci_perf.report.sentences import say


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustedRun:
    """The part of a run that is trusted, and notes for the reader on what is not."""

    run: Run
    notes: tuple[Phrase, ...] = ()


def trusted(client: Client, run: Run, *, base: str) -> TrustedRun:
    """Return what may be judged of a run; `base` is the commit of the branch that judges.

    A run cannot say that a missing workload was not asked for, nor that a number is accepted. Pairs
    count only against a commit that this branch contains: any other commit may be as slow as its
    author likes. Raises GithubError.
    """
    whole = msgspec.structs.replace(run, selection=())
    if whole.interleaved is None:
        return TrustedRun(run=whole)
    how = msgspec.structs.replace(whole.interleaved, accepted={})
    whole, source = msgspec.structs.replace(whole, interleaved=how), how.source
    if not source.dirty and pulls.contains(client, base, source.commit):
        return TrustedRun(run=whole)
    alone = msgspec.structs.replace(whole, interleaved=None, paired=())
    return TrustedRun(run=alone, notes=(say("foreign_base", commit=source.commit),))


def with_record(trusted: TrustedRun, record: CheckRecord | None) -> TrustedRun:
    """Return the run with what our own comment says of earlier checks, and not what it claims."""
    if record is None:
        alone = msgspec.structs.replace(trusted.run, checks=Checks(before=None), earlier=())
        return replace(trusted, run=alone)
    return replace(trusted, run=check_record.vouched(record, trusted.run))


def held(
    comparison: Comparison, record: CheckRecord | None
) -> tuple[Comparison, tuple[Phrase, ...]]:
    """Let a regression stand that an earlier run of the same commits has proven by its pairs."""
    rows = check_record.held(record, comparison) if record else []
    if not rows:
        return comparison, ()
    names = [(name,) for name in sorted({workload for workload, _ in rows})]
    blamed = msgspec.structs.replace(comparison, exit_code=int(ExitCode.REGRESSED))
    return blamed, (say("held", names=names),)


def source_notes(run: Run, head: str) -> tuple[Phrase, ...]:
    """Say why the numbers may not be those of the commit `head`."""
    notes = []
    if run.source.commit != head:
        notes.append(say("other_commit", measured=run.source.commit, head=head))
    if run.source.dirty:
        notes.append(say("changed_files"))
    return tuple(notes)


def check_source(run: Run, head: str, label: str) -> None:
    """Refuse numbers of other code than that of the commit `head`. Raises RefusedError."""
    source = run.source
    if source.commit != head:
        raise RefusedError(
            f"{label}: expected numbers of {head[:12]}, found some of {source.commit[:12]}; let "
            "the workflow check out the head of the pull request, not its trial merge, and have git"
        )
    if source.dirty:
        raise RefusedError(
            f"{label}: expected numbers of {head[:12]}, found some of a checkout with changed "
            "files; measure the commit itself"
        )


def unproven(comparison: Comparison, *, are_pairs_refused: bool) -> tuple[Phrase, ...]:
    """Say that gating numbers look worse, where no pairs that count could say more.

    A fork can leave out the pairs that would prove its loss. Where its pairs are refused, an
    inconclusive number lacks them as well.
    """
    names = {
        row.workload
        for row in comparison.rows
        if isinstance(row, Change)
        and row.gate
        and row.ratio is not None
        and row.ratio > 1
        and (signs.is_by_history_alone(row) or (are_pairs_refused and _is_inconclusive(row)))
    }
    return (say("unproven", workloads=len(names)),) if names else ()


def _is_inconclusive(row: Change) -> bool:
    return row.verdict is Verdict.INCONCLUSIVE and row.code is not Code.UNTRUSTED


def incomparable(comparison: Comparison) -> tuple[Phrase, ...]:
    """Say that baselines were there and could not judge: another machine, or another workload."""
    names = {row.workload for row in comparison.rows if row.code is Code.NOT_COMPARABLE}
    return (say("no_baseline_of_a_fork", workloads=len(names)),) if names else ()


def of_other_code(comparison: Comparison) -> Comparison:
    """Return the same comparison, with an exit code that neither passes nor blames the head.

    A required check shows an exit code, and no notes.
    """
    return msgspec.structs.replace(comparison, exit_code=int(ExitCode.NO_ANSWER))


def without_answer(comparison: Comparison) -> Comparison:
    """Return the same comparison, with an exit code that is no success."""
    if comparison.exit_code != ExitCode.OK:
        return comparison
    return msgspec.structs.replace(comparison, exit_code=int(ExitCode.NO_ANSWER))


def with_proven_programs(
    client: Client, pull: PullRequest, run: Run, *, baselines: Path, workloads: Path, notify: Notify
) -> Run:
    """Return the run with every claim of a fork marked that is not proven here.

    Whoever may push to the repository is believed, as for the numbers.
    """
    if not (run.same and pull.is_fork):
        return run
    prefix = baseline_changes.in_repository(Path()).as_posix().removeprefix(".")
    file = (workloads / "suite.toml").as_posix() if workloads.is_dir() else ""
    try:
        head = GithubTree(client, pull.head.sha, prefix=prefix)
        return claims.proven(run, FolderTree(Path()), head, file, baselines, notify)
    except IncomparableError as error:
        return claims.unproven(run, error, notify)
