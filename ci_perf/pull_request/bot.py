"""The bot: answer a comment that accepts new baselines, by a commit or by the reason for none.

Whatever the comment names is checked against what GitHub says now; whatever is committed is made
here, of numbers that a run has measured. Nothing of the pull request is run.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ci_perf.baselines import accept, layout
from ci_perf.baselines.accept import Acceptance, Action, Mode
from ci_perf.errors import InvalidFileError, RefusedError, UsageError
from ci_perf.gate import Notify, compare
from ci_perf.gate import accept as accepting
from ci_perf.github import comment_command, commits, runs
from ci_perf.github.access import Client
from ci_perf.github.comment_command import AcceptOrder, CommandComment, Reaction
from ci_perf.github.commits import NewCommit
from ci_perf.github.pulls import OpenPull
from ci_perf.github.runs import WorkflowRun
from ci_perf.model.run import Run
from ci_perf.pull_request import baseline_changes, fetch, trust
from ci_perf.report import publication, units
from ci_perf.report.accept_help import AcceptHint

# Errors that a person can do something about; others are GitHub's failures, or bugs of ours.
_REFUSALS = (RefusedError, UsageError, InvalidFileError)


@dataclass(frozen=True, slots=True, kw_only=True)
class BotOptions:
    """What the workflow that runs the bot says: never the comment, nor the pull request.

    ``baselines`` is a folder of the repository; ``workloads`` is checked out, with its limits.
    """

    workflow: str
    artifacts: Sequence[str]
    baselines: Path
    workloads: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    """An order that was checked, its pull request, and the run that measured its commit."""

    client: Client
    comment: CommandComment
    options: BotOptions
    order: AcceptOrder
    pull: OpenPull
    run: WorkflowRun


class _DoneError(Exception):
    """An earlier run of this job has made the commit `sha`, but could not answer."""

    def __init__(self, sha: str) -> None:
        super().__init__(sha)
        self.sha = sha


def handle_comment(
    client: Client,
    comment: CommandComment,
    options: BotOptions,
    *,
    notify: Notify,
) -> None:
    """Do what a comment asks for, and answer it. Raises GithubError."""
    hint: AcceptHint | None = None
    try:
        # Before our reaction, which GitHub might count as a change of the comment.
        comment_command.check_unchanged(client, comment)
        comment_command.react(client, comment.id, Reaction.SEEN)
        request = _request(client, comment, options)
        hint = _hint(request)
        _refuse_fork(request.pull)
        text = _accept(request, notify)
    except _DoneError as done:
        text = publication.reply_accepted_before(comment.login, done.sha)
    except _REFUSALS as refusal:
        notify(f"refused: {refusal}")
        _refuse(client, comment, str(refusal), hint)
        return
    comment_command.reply(client, comment.pull, comment.id, text)
    comment_command.react(client, comment.id, Reaction.DONE)


def _request(client: Client, comment: CommandComment, options: BotOptions) -> _Request:
    """Check who asks, for what, and whether that still stands. Raises RefusedError and others."""
    comment_command.check_permission(client, comment.login)
    order = comment_command.parse_order(comment.body)
    pull = comment_command.open_pull(client, comment.pull)
    _check_head(client, comment, pull, order)
    run = runs.find_run_of_commit(
        client, pull.sha, pull.repository_id, pull=pull.number, workflow=options.workflow
    )
    runs.check_run(run, workflow=options.workflow)
    return _Request(
        client=client, comment=comment, options=options, order=order, pull=pull, run=run
    )


def _check_head(
    client: Client, comment: CommandComment, pull: OpenPull, order: AcceptOrder
) -> None:
    try:
        comment_command.check_head(pull, order.sha)
    except RefusedError:
        if commits.is_on_top(client, pull.sha, order.sha, line=_asked_by(comment)):
            raise _DoneError(pull.sha) from None
        raise


def _refuse_fork(pull: OpenPull) -> None:
    if pull.is_fork:
        raise RefusedError(
            f"pull request {pull.number}: expected a branch of this repository, found one of a "
            "fork, to which the token of a job cannot push"
        )


def _accept(request: _Request, notify: Notify) -> str:
    """Commit what the run measured; return the answer to the comment."""
    accepted = [
        acceptance
        for artifact in request.options.artifacts
        for acceptance in _prepared(request, artifact, notify)
        if acceptance.action is not Action.KEPT
    ]
    login = request.comment.login
    if not accepted:
        return publication.reply_unchanged(login)
    commit = _commit(request, accepted)
    notify(f"committed {commit.sha} on {request.pull.branch}")
    described = [
        accepting.described(acceptance, _path(request.options, acceptance))
        for acceptance in accepted
    ]
    return publication.reply_accepted(login, commit.sha, described)


def _prepared(request: _Request, artifact: str, notify: Notify) -> tuple[Acceptance, ...]:
    """Decide what one artifact changes in the baselines as they are at the head."""
    options = request.options
    run = _trusted_run(request, artifact, notify)
    machine, label = run.environment.hard, fetch.label(request.run.number, artifact)
    rules = compare.rules(options.workloads, run.suite, options.baselines, machine, notify=notify)
    place = layout.folder(Path(), machine, run.suite)
    folder = baseline_changes.in_repository(options.baselines) / place
    contents = commits.folder(request.client, request.pull.sha, str(folder))
    known = {
        str(place / name): content
        for name, content in contents.items()
        if baseline_changes.is_name(name)
    }
    with baseline_changes.written(known) as root, fetch.refusing_odd_numbers(label):
        comparison = compare.against_baselines(run, root, label=label, rules=rules)
        return accept.prepare(
            root,
            run,
            comparison,
            workloads=request.order.workloads,
            reason=_reason(request),
            mode=Mode.KEEP,
        )


def _trusted_run(request: _Request, artifact: str, notify: Notify) -> Run:
    """Return the run in an artifact. Raises RefusedError where it measured another commit."""
    run = fetch.fetch_run(request.client, request.run.number, artifact)
    trust.check_source(run, request.pull.sha, fetch.label(request.run.number, artifact))
    trusted = trust.trusted(request.client, run, base=request.pull.base)
    for note in trusted.notes:
        notify("".join(note))
    return trusted.run


def _commit(request: _Request, accepted: Sequence[Acceptance]) -> NewCommit:
    """Commit the files, under paths and with contents of ours, on the commit that was measured."""
    files = {
        _path(request.options, acceptance): layout.render(acceptance.baseline).encode()
        for acceptance in accepted
    }
    headline = f"Accept {units.numbered(len(accepted), 'new baseline')}"
    body = [request.order.reason, _asked_by(request.comment)]
    body.append(f"Measured by {request.run.url}" if request.run.url else "")
    message = "\n\n".join(filter(None, [headline, *body]))
    pull = request.pull
    return commits.commit(request.client, pull.branch, pull.sha, files, message=message)


def _asked_by(comment: CommandComment) -> str:
    return f"Asked for by {comment.login}: {comment.url}"


def _path(options: BotOptions, acceptance: Acceptance) -> str:
    baseline = acceptance.baseline
    file = layout.path(Path(), baseline.machine, baseline.suite, baseline.workload)
    return str(baseline_changes.in_repository(options.baselines) / file)


def _reason(request: _Request) -> str:
    """Return the reason with its author, for the baseline; empty where none was given."""
    reason, comment = request.order.reason, request.comment
    return f"{reason} ({comment.login}, #{comment.pull})" if reason else ""


def _hint(request: _Request) -> AcceptHint:
    """Say where a person finds the numbers, to accept them by hand."""
    return AcceptHint(
        pull=request.pull.number,
        run=request.run.number,
        artifact=request.options.artifacts[0],
        baselines=str(baseline_changes.in_repository(request.options.baselines)),
    )


def _refuse(client: Client, comment: CommandComment, reason: str, hint: AcceptHint | None) -> None:
    text = publication.reply_refused(comment.login, reason, hint)
    comment_command.reply(client, comment.pull, comment.id, text)
    comment_command.react(client, comment.id, Reaction.REFUSED)
