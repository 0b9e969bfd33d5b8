"""How much is trusted of a run that anybody may have made: its numbers.

Not trusted: which workloads it had to measure, against which commit it launched pairs, and which
workloads run the same program, unless this job can prove it: by the records that the base branch
has committed, and by the files that GitHub has of the head. Nothing of the head is run, imported or
checked out.
"""

from dataclasses import dataclass
from pathlib import Path

import msgspec

from ci_perf.api_types import Notify
from ci_perf.errors import ExitCode, RefusedError
from ci_perf.github import pulls
from ci_perf.github.actions import Event
from ci_perf.github.answers import PullRequest, WorkflowRun
from ci_perf.github.client import Client
from ci_perf.github.commits import GithubTree
from ci_perf.github.pulls import ChangedFile
from ci_perf.judging import rules, signs
from ci_perf.model.comparison import Change, Code, Comparison, Verdict
from ci_perf.model.run import Checks, Run
from ci_perf.program.tree_sources import FolderTree
from ci_perf.program.trees import IncomparableError
from ci_perf.pull_request import baseline_changes, check_record
from ci_perf.pull_request.check_record import CheckRecord
from ci_perf.report.escape import Phrase
from ci_perf.report.sentences import say
from ci_perf.same_program import claims


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredPull:
    """A workflow run that measured the head of an open pull request, which changes ``files``.

    ``branch`` is the branch that judges: its checkout holds the baselines, and pairs count against
    commits in the history of its commit ``base``.
    """

    client: Client
    run: WorkflowRun
    event: Event
    pull: PullRequest
    files: list[ChangedFile]
    branch: str
    base: str


def trust_run(
    measured: MeasuredPull,
    run: Run,
    record: CheckRecord | None,
    *,
    baselines: Path,
    workloads: Path,
    notify: Notify,
) -> tuple[Run, tuple[Phrase, ...]]:
    """Return what may be judged of a run, and notes for the reader on what is refused of it.

    `record` is what our own comment says of earlier checks, `None` where it cannot be read: what
    the run says of them counts for nothing. Raises GithubError.
    """
    run, notes = drop_claims(measured.client, run, base=measured.base)
    run = with_proven_programs(
        measured.client, measured.pull, run, baselines=baselines, workloads=workloads, notify=notify
    )
    if record is not None:
        return check_record.vouch_for(record, run), notes
    return msgspec.structs.replace(run, checks=Checks(before=None), earlier=()), notes


def drop_claims(client: Client, run: Run, *, base: str) -> tuple[Run, tuple[Phrase, ...]]:
    """Return a run without what it cannot say; `base` is the commit of the branch that judges.

    A run cannot say that a missing workload was not asked for, nor that a number is accepted. Pairs
    count only against a commit that this branch contains: any other commit may be as slow as its
    author likes. Raises GithubError.
    """
    whole = msgspec.structs.replace(run, selection=())
    if whole.interleaved is None:
        return whole, ()
    how = msgspec.structs.replace(whole.interleaved, accepted={})
    whole, source = msgspec.structs.replace(whole, interleaved=how), how.source
    if not source.dirty and pulls.contains(client, base, source.commit):
        return whole, ()
    alone = msgspec.structs.replace(whole, interleaved=None, paired=())
    return alone, (say("foreign_base", commit=source.commit),)


def limit_answer(
    comparison: Comparison,
    measured: MeasuredPull,
    run: Run,
    record: CheckRecord | None,
    *,
    refused: tuple[Phrase, ...],
) -> tuple[Comparison, tuple[Phrase, ...]]:
    """Take from a comparison the answer that its run cannot give; say what is not trusted.

    A fork can leave out the pairs that would prove its loss. A regression that an earlier run of
    the same commits has proven by its pairs stands.
    """
    pull, is_fork = measured.pull, measured.pull.is_fork
    is_other = pull.base.ref != measured.branch
    source = note_source(run, pull.head.sha)
    notes = [say("other_branch", base=pull.base.ref, judging=measured.branch)] if is_other else []
    notes += [*source, *refused]
    unanswered: list[Phrase] = []
    are_refused = is_other or bool(refused)
    slower = count_unproven(comparison, are_pairs_refused=are_refused)
    if slower and (is_fork or are_refused):
        unanswered.append(say("unproven", workloads=slower))
    if is_fork and (without := count_incomparable(comparison)):
        unanswered.append(say("no_baseline_of_a_fork", workloads=without))
    if refused and (without := _count_new(comparison)):
        unanswered.append(say("no_baseline_without_pairs", workloads=without))
    if is_fork and source:
        # A required check shows an exit code, and no notes: it neither passes nor blames the head.
        comparison = rules.end_with(comparison, ExitCode.NO_ANSWER)
    if unanswered:
        comparison = rules.deny_success(comparison)
    held = check_record.find_held(record, comparison) if record else []
    if held:
        comparison = rules.end_with(comparison, ExitCode.REGRESSED)
        names = sorted({workload for workload, _ in held})
        unanswered.append(say("held", names=[(name,) for name in names]))
    return comparison, (*notes, *unanswered)


def note_source(run: Run, head: str) -> list[Phrase]:
    """Say why the numbers may not be those of the commit `head`."""
    measured = run.source.commit
    notes = [] if measured == head else [say("other_commit", measured=measured, head=head)]
    return [*notes, say("changed_files")] if run.source.dirty else notes


def check_source(run: Run, head: str, label: str) -> None:
    """Refuse numbers of other code than that of the commit `head`. Raises RefusedError."""
    source = run.source
    if source.commit != head:
        raise RefusedError(
            f"{label}: expected numbers of {head[:12]}, found numbers of {source.commit[:12]}; let "
            "the workflow check out the head of the pull request, not its trial merge, and have git"
        )
    if source.dirty:
        raise RefusedError(
            f"{label}: expected numbers of {head[:12]}, found those of a checkout with changed "
            "files; measure the commit itself"
        )


def count_unproven(comparison: Comparison, *, are_pairs_refused: bool) -> int:
    """Count workloads whose gating numbers look worse, where no pairs that count say more.

    Where its pairs are refused, an inconclusive number lacks them as well.
    """
    return len(
        {
            row.workload
            for row in comparison.rows
            if isinstance(row, Change)
            and row.gate
            and row.ratio is not None
            and row.ratio > 1
            and row.code is not Code.UNTRUSTED
            and (
                signs.is_by_history_alone(row)
                or (are_pairs_refused and row.verdict is Verdict.INCONCLUSIVE)
            )
        }
    )


def count_incomparable(comparison: Comparison) -> int:
    """Count workloads with a baseline that could not judge: of another machine, or workload."""
    return len({row.workload for row in comparison.rows if row.code is Code.NOT_COMPARABLE})


def _count_new(comparison: Comparison) -> int:
    """Count workloads without a baseline: without pairs, the base may have them, too."""
    return len({row.workload for row in comparison.rows if row.code is Code.NEW and row.gate})


def with_proven_programs(
    client: Client, pull: PullRequest, run: Run, *, baselines: Path, workloads: Path, notify: Notify
) -> Run:
    """Return the run with every claim of a fork marked that is not proven here.

    Whoever may push to the repository is believed, as for the numbers.
    """
    if not (run.same and pull.is_fork):
        return run
    prefix = baseline_changes.find_in_repository(Path()).as_posix().removeprefix(".")
    file = (workloads / "suite.toml").as_posix() if workloads.is_dir() else ""
    try:
        head = GithubTree(client, pull.head.sha, prefix=prefix)
        return claims.check_claims(run, FolderTree(Path()), head, file, baselines, notify)
    except IncomparableError as error:
        return claims.reject_claims(run, error, notify)
