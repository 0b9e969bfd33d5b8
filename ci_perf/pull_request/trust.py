"""How much is trusted of a run that anybody may have made: its numbers.

Not trusted: which workloads it had to measure, against which commit it launched pairs, and which
workloads run the same program, unless this job can prove it: by the records that the base branch
has committed, and by the files that GitHub has of the head. Nothing of the head is run, imported or
checked out.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from ci_perf.baselines import layout
from ci_perf.errors import CiPerfError, ExitCode, RefusedError
from ci_perf.gate import Notify
from ci_perf.github import pulls
from ci_perf.github.access import Client
from ci_perf.github.commits import GithubTree
from ci_perf.github.pulls import OpenPull
from ci_perf.judging import comparability
from ci_perf.model.comparison import Change, Comparison, Verdict
from ci_perf.model.program import SameProgram, blob
from ci_perf.model.run import Checks, Run
from ci_perf.program import dependencies, proof
from ci_perf.program.tree_sources import FolderTree
from ci_perf.program.trees import IncomparableError, Tree
from ci_perf.pull_request import baseline_changes, check_record
from ci_perf.pull_request.check_record import CheckRecord
from ci_perf.report import publication
from ci_perf.report.phrases import Phrase


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
    return TrustedRun(run=alone, notes=(publication.foreign_base(source.commit),))


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
    blamed = msgspec.structs.replace(comparison, exit_code=int(ExitCode.REGRESSED))
    return blamed, (publication.held(sorted({workload for workload, _ in rows})),)


def source_notes(run: Run, head: str) -> tuple[Phrase, ...]:
    """Say why the numbers may not be those of the commit `head`."""
    notes = []
    if run.source.commit != head:
        notes.append(publication.other_commit(run.source.commit, head))
    if run.source.dirty:
        notes.append(publication.changed_files())
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
    suspicious = {Verdict.UNCONFIRMED} | ({Verdict.INCONCLUSIVE} if are_pairs_refused else set())
    names = {
        row.workload
        for row in comparison.rows
        if isinstance(row, Change) and row.gate and row.verdict in suspicious and _is_worse(row)
    }
    return (publication.unproven(len(names)),) if names else ()


def _is_worse(row: Change) -> bool:
    return row.ratio is not None and row.ratio > 1


def incomparable(comparison: Comparison) -> tuple[Phrase, ...]:
    """Say that baselines were there and could not judge: another machine, or another workload."""
    names = {row.workload for row in comparison.rows if row.verdict is Verdict.INCOMPARABLE}
    return (publication.not_comparable(len(names)),) if names else ()


def of_other_code(comparison: Comparison) -> Comparison:
    """Return the same comparison, with an exit code that neither passes nor blames the head.

    A required check or status shows an exit code, and no notes.
    """
    return msgspec.structs.replace(comparison, exit_code=int(ExitCode.NO_ANSWER))


def without_answer(comparison: Comparison) -> Comparison:
    """Return the same comparison, with an exit code that is no success."""
    if comparison.exit_code != ExitCode.OK:
        return comparison
    return msgspec.structs.replace(comparison, exit_code=int(ExitCode.NO_ANSWER))


def with_proven_programs(
    client: Client, pull: OpenPull, run: Run, *, baselines: Path, workloads: Path, notify: Notify
) -> Run:
    """Return the run with every claim of a fork marked that is not proven here.

    Whoever may push to the repository is believed, as for the numbers.
    """
    if not (run.same and pull.is_fork):
        return run
    prefix = baseline_changes.in_repository(Path()).as_posix().removeprefix(".")
    try:
        tree: Tree = GithubTree(client, pull.sha, prefix=prefix)
        is_suite_same = _is_suite_same(tree, workloads)
        if not is_suite_same:
            notify("no workload is proven to be the same program: suite.toml differs")
    except IncomparableError as error:
        notify(f"no workload is proven to be the same program: {error}")
        return _marked(run, lambda _claim: False)
    asked = _asked_for(tree)
    return _marked(
        run, lambda claim: is_suite_same and _is_proven(claim, run, tree, asked, baselines, notify)
    )


def _marked(run: Run, is_proven: Callable[[SameProgram], bool]) -> Run:
    same = tuple(msgspec.structs.replace(claim, is_proven=is_proven(claim)) for claim in run.same)
    return msgspec.structs.replace(run, same=same)


def _is_proven(
    claim: SameProgram, run: Run, tree: Tree, asked: str, baselines: Path, notify: Notify
) -> bool:
    """Whether a committed record of what the newest session has measured holds for the head.

    `asked` says how the head asks for other packages than the base branch, if it does.
    """
    machine = run.environment.hard
    try:
        program = layout.program_of_newest_session(baselines, machine, run.suite, claim.workload)
    except CiPerfError as error:
        notify(f"the record of {claim.workload} proves nothing: {error}")
        return False
    if program is None:
        notify(f"{claim.workload}: the base branch has no record of its program")
        return False
    difference = proof.first_difference(program, tree)
    detail = difference.detail if difference else ""
    if asked and not detail and _had_other_packages(claim, run, baselines):
        detail = f"{asked}, and the run had other packages than the baseline"
    if detail:
        notify(f"{claim.workload} is not proven to be the same program: {detail}")
    return not detail


def _asked_for(head: Tree) -> str:
    """Say by which file the head may ask for other packages than this checkout; "" by none."""
    try:
        path = dependencies.first_difference(FolderTree(Path()), head)
    except IncomparableError as error:
        return str(error)
    return f"{path} differs" if path else ""


def _had_other_packages(claim: SameProgram, run: Run, baselines: Path) -> bool:
    file = layout.path(baselines, run.environment.hard, run.suite, claim.workload)
    return comparability.have_other_packages(
        layout.read(file).sessions[-1].soft, run.environment.soft
    )


def _is_suite_same(tree: Tree, workloads: Path) -> bool:
    """Whether the head has the parameters and settings of the base branch.

    Raises IncomparableError.
    """
    file = workloads / "suite.toml"
    if not file.is_file():
        return True  # a suite that comes with ci-perf
    return tree.blob(file.as_posix()) == blob(file.read_bytes())
