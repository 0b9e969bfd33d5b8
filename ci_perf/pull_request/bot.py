"""The bot: accept new baselines, or start a run, as a comment orders, or say why not.

    /ci-perf accept SHA [WORKLOAD…] ["REASON"]

or an order of orders.py, on the first line; later lines are for people. SHA is the commit at the
head, or at least its first 12 digits: an author can make two commits with the same first digits,
have one reviewed and push the other, and 7 digits are minutes of work.

The event says what was written. GitHub is asked again before anything is done: a comment can be
edited, a pull request closed, a branch pushed to, a permission taken away. What is committed is
made here, of numbers that a run has measured. Nothing of the pull request is run.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from ci_perf.api_types import Notify
from ci_perf.baselines import accept, layout
from ci_perf.baselines.accept import Acceptance, Action, Mode
from ci_perf.errors import InvalidFileError, RefusedError, UsageError
from ci_perf.gate import compare
from ci_perf.github import commits, pulls, report_comment, runs
from ci_perf.github.answers import Account, PullRequest, Repository, WorkflowRun
from ci_perf.github.client import Client, GithubError
from ci_perf.model.run import Run
from ci_perf.pull_request import baseline_changes, fetch, orders, trust
from ci_perf.report import accept_help, tables, units
from ci_perf.report.accept_help import AcceptHint
from ci_perf.report.escape import Sentence
from ci_perf.report.sentences import say
from ci_perf.report.tables import Block, Listing

USAGE = '/ci-perf accept SHA [WORKLOAD…] ["REASON"]'
# Phones type typographic quotes. The reason is shorter than a baseline's: who asked is added.
_ORDER = re.compile(
    r"/ci-perf[ \t]+accept[ \t]+(?P<sha>[0-9a-f]{12,40})"
    rf"(?P<workloads>(?:[ \t]+{orders.WORD}){{0,50}})"
    r'(?:[ \t]+["“](?P<reason>[^"“”]{1,400})["”])?[ \t]*'
)
_CALL = re.compile(r"/ci-perf(?![^ \t])")
_URL = re.compile(r"https?://[A-Za-z0-9_.:\[\]/-]+")
_MAX_LINES = 60
_LOGIN = re.compile(r"[A-Za-z0-9_.-]{1,100}")


@dataclass(frozen=True, slots=True, kw_only=True)
class BotOptions:
    """What the workflow that runs the bot says: never the comment, nor the pull request.

    ``baselines`` is a folder of the repository; ``workloads`` is checked out, with its limits.
    ``asked`` is the workflow that does what comments order, "" where they may only accept.
    """

    workflow: str
    asked: str = ""
    artifacts: Sequence[str]
    baselines: Path
    workloads: Path


class _Issue(msgspec.Struct):
    number: int
    pull_request: dict[str, object] | None = None


class _Comment(msgspec.Struct):
    id: int
    created_at: str
    updated_at: str
    body: str | None = None
    user: Account | None = None
    html_url: str = ""


class Order(msgspec.Struct):
    """The event of a comment."""

    action: str
    issue: _Issue
    comment: _Comment
    repository: Repository = msgspec.field(default_factory=Repository)

    @property
    def login(self) -> str:
        """The name of its author; empty where a bot wrote it."""
        user = self.comment.user
        return user.login if user and user.type != "Bot" and _LOGIN.fullmatch(user.login) else ""

    @property
    def line(self) -> str:
        """The first line, which is addressed to ci-perf or not."""
        return re.split(r"[\r\n]", self.comment.body or "", maxsplit=1)[0]


class _Permission(msgspec.Struct):
    permission: str


def read_order(environment: Mapping[str, str], payload: str) -> Order | None:
    """Return what a person's new comment on a pull request orders; `None` where it is no order.

    Raises InvalidFileError where the payload is not of the named event.
    """
    if environment.get("GITHUB_EVENT_NAME") != "issue_comment":
        return None
    try:
        order = msgspec.json.decode(payload, type=Order)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise InvalidFileError(
            f"GITHUB_EVENT_PATH: expected the payload of an 'issue_comment' event, found: {error}"
        ) from None
    is_new = order.action == "created" and order.issue.pull_request is not None
    return order if is_new and order.login and _CALL.match(order.line) else None


def answer(client: Client, order: Order, options: BotOptions, *, notify: Notify) -> None:
    """Do what a comment asks for, and answer it. Raises GithubError."""
    hint: AcceptHint | None = None
    page: list[Block]
    try:
        _check_author(client, order)
        asked = _read_line(order.line, can_start=bool(options.asked))
        pull = pulls.get(client, order.issue.number)
        _check_pull(pull, asked["sha"])
        if "verb" in asked.groupdict():
            page = [orders.start(client, pull, asked, login=order.login, by=_place(order, options))]
        else:
            run = runs.find_run_of_commit(client, pull, workflow=options.workflow)
            hint = AcceptHint(
                pull=pull.number,
                run=run.id,
                artifact=options.artifacts[0],
                baselines=str(baseline_changes.find_in_repository(options.baselines)),
            )
            page = _accept(client, order, pull, run, asked, options, notify)
    except (RefusedError, UsageError, InvalidFileError) as refusal:
        notify(f"refused: {refusal}")
        page = [say("refused", login=order.login, reason=Sentence(refusal))]
        if hint is not None:
            page += [say("accept_by_hand"), Listing(accept_help.commands(hint), "sh")]
    key = f"answer/{order.comment.id}"  # no suite is called so
    text = report_comment.harmless(tables.join_markdown(page))
    body = f"{report_comment.marker(key)}\n{text}"
    report_comment.create(client, order.issue.number, key, body)


def _place(order: Order, options: BotOptions) -> orders.Workflows:
    return orders.Workflows(
        measuring=options.workflow,
        asked=options.asked,
        branch=order.repository.default_branch,
        page=order.comment.html_url.partition("/pull/")[0],
    )


def _check_author(client: Client, order: Order) -> None:
    """Refuse an order that its author did not write so, or may not give. Raises RefusedError.

    Who edits a comment need not be its author.
    """
    what = f"comment {order.comment.id}"
    now = client.get(f"/issues/comments/{order.comment.id}", _Comment, what=what)
    written = (order.comment.created_at, order.comment.created_at, order.comment.body or "")
    if (now.created_at, now.updated_at, now.body or "") != written:
        raise RefusedError(f"{what}: expected an unedited comment; write a new one")
    what = f"permission of {order.login}"
    try:
        path = f"/collaborators/{order.login}/permission"
        level = client.get(path, _Permission, what=what).permission
    except GithubError as error:
        if error.status != 404:
            raise
        level = "none"
    if level not in {"admin", "write"}:  # "maintain" is "write" in this field
        raise RefusedError(
            f"{what}: expected write access to this repository, found {level[:40]!r}; somebody who "
            "may push must ask"
        )


def _read_line(line: str, *, can_start: bool) -> re.Match[str]:
    """Take the words of an order apart. Raises UsageError."""
    if can_start and (start := orders.read(line)):
        return start
    asked = _ORDER.fullmatch(line)
    if asked is None or not (asked["reason"] or "-").isprintable():
        usages = " or ".join((USAGE, *(orders.USAGES if can_start else ())))
        raise UsageError(
            f"expected {usages} with 12 to 40 digits of the commit, in small letters, found "
            f"{line[:80]!r}"
        )
    return asked


def _check_pull(pull: PullRequest, sha: str) -> None:
    """Refuse a pull request that is not open, or has another head. Raises RefusedError."""
    what = f"pull request {pull.number}"
    if pull.state != "open":
        raise RefusedError(f"{what}: expected it open, found it {pull.state[:40]}")
    if not pull.head.sha.startswith(sha):
        raise RefusedError(
            f"{what}: expected {sha[:12]} at its head, found {pull.head.sha[:12]}; look at the "
            "report of that commit, and accept that one"
        )


def _accept(
    client: Client,
    order: Order,
    pull: PullRequest,
    run: WorkflowRun,
    asked: re.Match[str],
    options: BotOptions,
    notify: Notify,
) -> list[Block]:
    """Commit what the run measured, under paths and with contents of ours; return the answer."""
    if pull.is_fork:
        raise RefusedError(
            f"pull request {pull.number}: expected a branch of this repository, found one of a "
            "fork, to which the token of a job cannot push"
        )
    reason = (asked["reason"] or "").strip()
    accepted: dict[str, Acceptance] = {}
    for artifact in options.artifacts:
        measured = _fetch(client, pull, run.id, artifact, notify)
        rules = compare.rules(
            options.workloads,
            measured.suite,
            options.baselines,
            measured.environment.hard,
            notify=notify,
        )
        place = layout.folder(Path(), measured.environment.hard, measured.suite)
        top = baseline_changes.find_in_repository(options.baselines)
        known = {
            str(place / name): content
            for name, content in commits.folder(client, pull.head.sha, str(top / place)).items()
            if baseline_changes.is_name(name)
        }
        label = fetch.label(run.id, artifact)
        with baseline_changes.write_temporarily(known) as root, fetch.refuse_odd_numbers(label):
            comparison = compare.against_baselines(measured, root, label=label, rules=rules)
            prepared = accept.prepare(
                root,
                measured,
                comparison,
                workloads=asked["workloads"].split(),
                reason=f"{reason} ({order.login}, #{pull.number})" if reason else "",
                mode=Mode.KEEP,
            )
        for acceptance in prepared:
            if acceptance.action is not Action.KEPT:
                accepted[str(top / place / f"{acceptance.workload}.json")] = acceptance
    if not accepted:
        return [say("nothing_to_accept", login=order.login)]
    headline = f"Accept {units.render_count(len(accepted), 'new baseline')}"
    by = f"Measured by {run.html_url}" if _URL.fullmatch(run.html_url) else ""
    asker = f"Asked for by {order.login}: {order.comment.html_url}"
    message = "\n\n".join(filter(None, (headline, reason, asker, by)))
    contents = {path: layout.render(known.baseline).encode() for path, known in accepted.items()}
    sha = commits.commit(client, pull, contents, message=message)
    notify(f"committed {sha} on {pull.head.ref}")
    lines = accept_help.result(accepted).splitlines()
    cut = ["…"] if len(lines) > _MAX_LINES else []
    return [
        say("accepted", login=order.login, sha=sha),
        Listing("\n".join(lines[:_MAX_LINES] + cut)),
        say("start_the_checks"),
    ]


def _fetch(client: Client, pull: PullRequest, run: int, artifact: str, notify: Notify) -> Run:
    """Return the run in an artifact. Raises RefusedError where it measured another commit."""
    measured = fetch.fetch_run(client, run, artifact)
    trust.check_source(measured, pull.head.sha, fetch.label(run, artifact))
    trusted, notes = trust.drop_claims(client, measured, base=pull.base.sha)
    for note in notes:
        notify("".join(note))
    return trusted
