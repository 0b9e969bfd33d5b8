"""The steps of `ci-perf bot`: from a comment to a commit, or to the reason why there is none.

Whatever the comment names is checked against what GitHub says now; whatever is committed is made
here, of numbers that a run has measured. Nothing of the pull request is run.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ci_perf.baselines import accept, layout
from ci_perf.baselines.accept import Acceptance, Action, Mode
from ci_perf.cli import output
from ci_perf.errors import InvalidFileError, RefusedError, UsageError
from ci_perf.gate import accept as accepting
from ci_perf.gate import compare
from ci_perf.github import branches, comment_command, runs
from ci_perf.github.branches import NewCommit
from ci_perf.github.client import Client
from ci_perf.github.comment_command import AcceptOrder, CommandComment, Reaction
from ci_perf.github.pulls import OpenPull
from ci_perf.model.run import Run
from ci_perf.pull_request import baseline_changes, fetch, trust
from ci_perf.report import bot_replies
from ci_perf.report.accept_help import AcceptHint

# What a person can do something about. Anything else is GitHub's failure, or a bug of ours.
_REFUSALS = (RefusedError, UsageError, InvalidFileError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What the workflow that runs the bot says: never the comment, nor the pull request.

    ``baselines`` is a folder of the repository; ``workloads`` is checked out, with ``limits``.
    """

    workflow: str
    artifacts: Sequence[str]
    baselines: Path
    workloads: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What somebody may have, as far as we know by now."""

    order: AcceptOrder
    pull: OpenPull
    run: runs.WorkflowRun


class _DoneError(Exception):
    """An earlier run of this job has made the commit `sha`, and was not able to say so."""

    def __init__(self, sha: str) -> None:
        super().__init__(sha)
        self.sha = sha


def obey(client: Client, comment: CommandComment, rules: Rules) -> None:
    """Do what a comment asks for, and answer it. Raises GithubError."""
    hint: AcceptHint | None = None
    try:
        # First, and before our reaction: nothing of ours may pass for a change of the comment.
        comment_command.check_unchanged(client, comment)
        comment_command.react(client, comment.comment, Reaction.SEEN)
        wanted = _wanted(client, comment, rules)
        hint = _by_hand(wanted, rules)
        _check_home(wanted.pull)
        text = _accept(client, comment, wanted, rules)
    except _DoneError as done:
        text = bot_replies.accepted_before(comment.login, done.sha)
    except _REFUSALS as refusal:
        _refuse(client, comment, str(refusal), hint)
        return
    comment_command.reply(client, comment.pull, comment.comment, text)
    comment_command.react(client, comment.comment, Reaction.DONE)


def _wanted(client: Client, comment: CommandComment, rules: Rules) -> Wanted:
    """Check who asks, for what, and whether that still stands. Raises RefusedError and others."""
    comment_command.check_permission(client, comment.login)
    order = comment_command.parse_order(comment.body)
    pull = comment_command.open_pull(client, comment.pull)
    _check_head(client, comment, pull, order)
    run = runs.find_run_of_commit(
        client, pull.sha, pull.repository_id, pull=pull.number, workflow=rules.workflow
    )
    runs.check_run(run, workflow=rules.workflow)
    return Wanted(order=order, pull=pull, run=run)


def _check_head(
    client: Client, comment: CommandComment, pull: OpenPull, order: AcceptOrder
) -> None:
    try:
        comment_command.check_head(pull, order.sha)
    except RefusedError:
        if branches.is_on_top(client, pull.sha, order.sha, line=_asked_by(comment)):
            raise _DoneError(pull.sha) from None
        raise


def _check_home(pull: OpenPull) -> None:
    if pull.is_fork:
        raise RefusedError(
            f"pull request {pull.number}: expected a branch of this repository, found one of a "
            "fork, to which the token of a job cannot push"
        )


def _accept(client: Client, comment: CommandComment, wanted: Wanted, rules: Rules) -> str:
    """Commit what the run measured; return what is said of it."""
    made = [
        one
        for name in rules.artifacts
        for one in _prepared(client, comment, wanted, rules, name)
        if one.action is not Action.KEPT
    ]
    if not made:
        return bot_replies.unchanged(comment.login)
    done = _commit(client, comment, wanted, rules, made)
    output.say(f"committed {done.sha} on {wanted.pull.branch}")
    told = [accepting.described(one, _path(rules, one)) for one in made]
    return bot_replies.accepted(comment.login, done.sha, told)


def _prepared(
    client: Client, comment: CommandComment, wanted: Wanted, rules: Rules, name: str
) -> tuple[Acceptance, ...]:
    """Decide what one artifact changes in the baselines as they are at the head."""
    run = _believed(client, wanted, name)
    limits = compare.rules(
        rules.workloads, run.suite, rules.baselines, run.environment.hard, notify=output.say
    )
    place = layout.folder(Path(), run.environment.hard, run.suite)
    where = baseline_changes.in_repository(rules.baselines) / place
    found = branches.folder(client, wanted.pull.sha, str(where))
    known = {
        str(place / file): content
        for file, content in found.items()
        if baseline_changes.is_name(file)
    }
    label = fetch.label(wanted.run.number, name)
    with baseline_changes.written(known) as root, fetch.distrusting(label):
        comparison = compare.against_baselines(run, root, label=label, rules=limits)
        return accept.prepare(
            root,
            run,
            comparison,
            workloads=wanted.order.workloads,
            reason=_reason(comment, wanted.order),
            mode=Mode.KEEP,
        )


def _believed(client: Client, wanted: Wanted, name: str) -> Run:
    """Return what one artifact has of the head. Raises RefusedError where it is of other code."""
    run = fetch.measured(client, wanted.run.number, name)
    trust.check_source(run, wanted.pull.sha, fetch.label(wanted.run.number, name))
    believed = trust.of(client, run, base=wanted.pull.base)
    for doubt in believed.trust_notes:
        output.say("".join(doubt))
    return believed.run


def _commit(
    client: Client,
    comment: CommandComment,
    wanted: Wanted,
    rules: Rules,
    made: Sequence[Acceptance],
) -> NewCommit:
    """Commit the files, under paths and with contents of ours, on the commit that was measured."""
    files = {_path(rules, one): layout.render(one.baseline).encode() for one in made}
    headline = f"Accept {len(made)} new baseline{'s' if len(made) > 1 else ''}"
    body = [wanted.order.reason, _asked_by(comment)]
    body.append(f"Measured by {wanted.run.url}" if wanted.run.url else "")
    message = "\n\n".join(filter(None, [headline, *body]))
    return branches.commit(client, wanted.pull.branch, wanted.pull.sha, files, message=message)


def _asked_by(comment: CommandComment) -> str:
    return f"Asked for by {comment.login}: {comment.url}"


def _path(rules: Rules, one: Acceptance) -> str:
    baseline = one.baseline
    file = layout.path(Path(), baseline.machine, baseline.suite, baseline.workload)
    return str(baseline_changes.in_repository(rules.baselines) / file)


def _reason(comment: CommandComment, order: AcceptOrder) -> str:
    """Keep in the baseline who has given the reason; none is invented where none was given."""
    who = f" ({comment.login}, #{comment.pull})"
    return f"{order.reason}{who}" if order.reason else ""


def _by_hand(wanted: Wanted, rules: Rules) -> AcceptHint:
    return AcceptHint(
        pull=wanted.pull.number,
        run=wanted.run.number,
        artifact=rules.artifacts[0],
        baselines=str(baseline_changes.in_repository(rules.baselines)),
    )


def _refuse(client: Client, comment: CommandComment, reason: str, hint: AcceptHint | None) -> None:
    output.say(f"refused: {reason}")
    comment_command.reply(
        client, comment.pull, comment.comment, bot_replies.refused(comment.login, reason, hint)
    )
    comment_command.react(client, comment.comment, Reaction.REFUSED)
