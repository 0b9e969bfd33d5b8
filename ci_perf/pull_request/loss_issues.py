"""The issues of a watched branch: one for each culprit, and one for the creeps of a workload.

What a watch says was written by a job that ran measured code: all of it is shown as foreign text,
and GitHub is asked whether its commits are in the history of the branch.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ci_perf.api_types import Notify
from ci_perf.baselines import layout
from ci_perf.errors import UsageError
from ci_perf.github import issues, pulls, report_comment
from ci_perf.github.client import Client, GithubError
from ci_perf.github.issues import Issue
from ci_perf.model.watch import Creep, Culprit, LossState, Watched
from ci_perf.report import phrases, tables, units
from ci_perf.report.escape import Phrase, Sentence, Words
from ci_perf.report.phrases import fill
from ci_perf.report.tables import Block, Bullets, Listing, Paragraph, Table

_MARK = re.compile(
    r"<!-- ci-perf:(?P<key>(?:loss|creep)=[^ ]+) state=(?P<state>[a-z]+) of=(?P<of>[^ ]*) -->"
)
_SHA = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_SHOWN = 12
_MOST_ROWS = 50
# More in one night are a fault of the machine or of the watch, which nobody reads one by one.
_MOST_NEW = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackedLoss:
    """What one issue is about. ``reports`` are of watches by name: one for each machine and suite.

    ``commit`` is empty for a creep. ``end`` is how every title of this issue ends.
    """

    key: str
    commit: str
    title: str
    end: str
    reports: Sequence[tuple[str, Culprit | Creep]]

    @property
    def state(self) -> LossState:
        """Open where any machine still shows it."""
        states = {report.state for _, report in self.reports}
        return next(each for each in ("open", "accepted", "repaired") if each in states)

    @property
    def open_in(self) -> list[str]:
        """Name the watches in which it is open."""
        return sorted({scope for scope, report in self.reports if report.state == "open"})

    @property
    def said(self) -> Phrase:
        """Say its state, and why it is in it."""
        mine = next(each for _, each in self.reports if each.state == self.state)
        until = f" until {mine.until}" if mine.until and self.state == "accepted" else ""
        why: Phrase = (Words(": "), Sentence(mine.reason)) if mine.reason else ()
        return (Words(f"{self.state}{until}"), *why)


def check_repository(client: Client, watched: Watched, label: str) -> None:
    """Refuse a watch of another repository. Raises UsageError and GithubError."""
    home, known = f"{client.owner}/{client.name}", watched.repository
    if known.name is not None and known.name.lower() != home.lower():
        raise UsageError(f"{label}: expected a watch of {home}, found one of {known.name[:200]!r}")
    if not (_SHA.fullmatch(known.root) and issues.is_root(client, known.root)):
        raise UsageError(
            f"{label}: expected a watch of {home}, found one of a history that begins with "
            f"{known.root[:_SHOWN]}, which is no first commit of it"
        )


def list_losses(watches: Iterable[Watched]) -> Iterator[TrackedLoss]:
    """Gather what several watches say of one culprit; the creeps of a workload are one, too."""
    culprits: dict[str, list[tuple[str, Culprit]]] = {}
    creeps: dict[tuple[str, str], list[tuple[str, Creep]]] = {}
    for watched in watches:
        scope = layout.folder(Path(), watched.machine, watched.suite).as_posix()
        for culprit in watched.culprits:
            culprits.setdefault(culprit.commit, []).append((scope, culprit))
        for creep in watched.creeps:
            creeps.setdefault((scope, creep.workload), []).append((scope, creep))
    for commit, reports in culprits.items():
        first, *others = sorted({row.workload for _, report in reports for row in report.rows})
        more = f" and {units.render_count(len(others), 'other')}" if others else ""
        end = f" became worse in {commit[:_SHOWN]}"
        title = f"ci-perf: {first}{more}{end}"
        yield TrackedLoss(
            key=f"loss={commit}", commit=commit, title=title, end=end, reports=reports
        )
    for (scope, workload), crept in creeps.items():
        end = f": {workload} became worse in small steps on {scope}"
        key = f"creep={scope}/{workload}"
        still = [each for each in crept if each[1].state == "open"] or crept
        yield TrackedLoss(key=key, commit="", title=f"ci-perf{end}", end=end, reports=still)


def follow(
    client: Client, watches: Sequence[Watched], environment: Mapping[str, str], *, notify: Notify
) -> bool:
    """Bring the issues of all losses up to date; return whether GitHub did all of it.

    Raises GithubError where not even the issues can be listed.
    """
    own = issues.list_own(client)
    head = environment.get("GITHUB_SHA", "")
    is_done, opened = True, 0
    for loss in list_losses(watches):
        known = _find(own, loss, notify)
        if known is None and (loss.state != "open" or opened == _MOST_NEW):
            if loss.state == "open":
                notify(f"{loss.title}: no issue, for {_MOST_NEW} are new; the next night opens it")
            continue
        try:
            opened += _follow_one(client, loss, known, head, notify)
        except GithubError as error:
            notify(f"warning: {loss.title}: {error}")
            is_done = False
    return is_done


def _find(own: Sequence[Issue], loss: TrackedLoss, notify: Notify) -> Issue | None:
    """Return the issue of a loss by its mark, else by its title; of several the oldest open one."""
    marks = {each.number: _MARK.match(each.body or "") for each in own}
    mine = [each for each in own if (mark := marks[each.number]) and mark["key"] == loss.key]
    if not mine:
        mine = [each for each in own if not marks[each.number] and each.title.endswith(loss.end)]
        if mine:
            notify(f"issue #{mine[0].number}: its mark is lost or edited; found by its title")
    return min(mine, key=lambda each: (each.state != "open", each.number), default=None)


def _follow_one(
    client: Client, loss: TrackedLoss, known: Issue | None, head: str, notify: Notify
) -> bool:
    """Open, update, close or reopen one issue; return whether it is new. Raises GithubError."""
    mark = _MARK.match(known.body or "") if known else None
    # Without a mark nobody knows that it was closed by us.
    last = mark["state"] if mark else "open"
    name = f"issue #{known.number}" if known else loss.title
    silent = {*(mark["of"] if mark else "").split(",")} - {"", *(at for at, _ in loss.reports)}
    if silent:
        notify(f"{name}: left as it is, for there is no watch of {', '.join(sorted(silent))}")
        return False
    if known and known.state == "closed":
        if (last, loss.state) == ("open", "open"):
            notify(f"{name}: a person has closed it; it stays closed, although the loss is open")
            return False
        # What is accepted opens again after its day, also where a person has closed the issue.
        if loss.state != "open" and (last, loss.state) != ("open", "accepted"):
            return False
    if loss.commit and not pulls.contains(client, head, loss.commit):
        notify(
            f"{name}: left as it is, for commit {loss.commit[:_SHOWN]} is not in the history of "
            f"{head[:_SHOWN] or 'GITHUB_SHA'}; was that rewritten?"
        )
        return False
    assigned, teams = issues.choose_owners(client, _list_owners(client, loss, head))
    body = _write_body(client, loss, teams)
    if known is None:
        content = {"title": loss.title, "body": body, "assignees": assigned}
        made = client.make("/issues", content, what=loss.title)
        notify(f"opened {made.html_url or loss.title}")
        return True
    _change(client, loss, known, body, notify)
    return False


def _change(client: Client, loss: TrackedLoss, known: Issue, body: str, notify: Notify) -> None:
    """Write an issue anew; who is assigned, and its title, are for people by now."""
    state = "open" if loss.state == "open" else "closed"
    change: dict[str, str] = {}
    if (known.body or "").replace("\r\n", "\n").rstrip() != body.rstrip():
        change["body"] = body
    if known.state != state:
        change["state"] = state
        ends = {"open": "reopened", "repaired": "completed", "accepted": "not_planned"}
        change["state_reason"] = ends[loss.state]
    if not change:
        return
    what = f"issue #{known.number}"
    client.change(f"/issues/{known.number}", change, what=what)
    if "state" in change:
        said = {"open": "Open again, because the loss is ", "closed": "Closed: the loss is "}
        text = tables.join_markdown([(Words(said[state]), *loss.said)])
        client.make(f"/issues/{known.number}/comments", {"body": text}, what=what)
    notify(f"{what}: {'written anew' if 'state' not in change else state}")


def _list_owners(client: Client, loss: TrackedLoss, head: str) -> Iterator[list[str]]:
    """Yield who might own it: the author, then the owners of the file, then those of the suite."""
    if loss.commit:
        yield list(filter(None, [issues.find_author(client, loss.commit)]))
    for _, report in loss.reports:
        if isinstance(report, Culprit) and report.cause and report.cause.file:
            yield issues.find_file_owners(client, head, report.cause.file)
    yield [report.owner for _, report in loss.reports if report.owner]


def _write_body(client: Client, loss: TrackedLoss, teams: Sequence[str]) -> str:
    blocks: list[Block] = [_line("State: {value}.", loss.said)]
    if teams:
        blocks.append((Words(f"For {', '.join(dict.fromkeys(teams))}."),))
    scope, first = loss.reports[0]
    if isinstance(first, Culprit):
        brought = [Words(f"#{number}") for number in issues.list_pulls(client, loss.commit)]
        blocks += _describe_culprit(first, [*brought])
    blocks.append(_lay_out_rows(loss.reports))
    if isinstance(first, Culprit):
        blocks += _show_again(first, re.sub("^builtin-", "builtin:", Path(scope).name))
    else:
        crept = [report for _, report in loss.reports if isinstance(report, Creep)]
        blocks += _describe_steps(crept)
    note = (
        "ci_perf writes this text anew, and closes the issue when the loss is repaired or accepted."
    )
    blocks.append(Paragraph((Words(note),), "small"))
    head = f"<!-- ci-perf:{loss.key} state={loss.state} of={','.join(loss.open_in)} -->\n"
    return head + report_comment.harmless(tables.join_markdown(blocks))


def _line(template: str, value: Phrase) -> Phrase:
    return fill(template, value=value)


def _describe_culprit(culprit: Culprit, brought: Sequence[Words]) -> Iterator[Block]:
    by = fill(
        "{commit} by {author}: {subject}",
        commit=(Words(culprit.commit),),  # GitHub makes a link of it
        author=(culprit.author.name,),
        subject=(Sentence(culprit.subject),),
    )
    yield (*by, Words(f". Pull request: {', '.join(brought)}.")) if brought else by
    yield fill(
        f"Found on {culprit.first_seen}, of {units.render_count(culprit.window.commits, 'commit')} "
        f"after {{good}}, up to {{bad}}. Last answer: {culprit.checked}.",
        good=(culprit.window.good[:_SHOWN],),
        bad=(culprit.window.bad[:_SHOWN],),
    )


def _lay_out_rows(reports: Sequence[tuple[str, Culprit | Creep]]) -> Table:
    """Show each number with its interval, and where it was measured."""
    heading = ("workload", "metric", "change", "before → now", "measured on")
    rows: list[tuple[Phrase, ...]] = []
    for scope, report in reports:
        for row in report.rows if isinstance(report, Culprit) else (report,):
            unit = phrases.unit(row.metric)
            sides = (
                "–"  # noqa: RUF001  the sign of an empty cell
                if isinstance(row, Creep)
                else units.both(units.value(row.baseline, unit), units.value(row.now, unit))
            )
            rows.append(
                (
                    (row.workload,),
                    (phrases.metric_title(row.metric),),
                    (units.change(row.change, row.low, row.high),),
                    (Words(sides),),
                    (scope,),
                )
            )
    if more := rows[_MOST_ROWS:]:
        rows[_MOST_ROWS:] = [((Words(f"{len(more)} more"),), (), (), (), ())]
    return Table(heading, rows, left=("metric", "measured on"))


def _show_again(culprit: Culprit, suite: str) -> Iterator[Block]:
    if cause := culprit.cause:
        yield fill(
            "Cause: {text}{function}{file}",
            text=(Sentence(cause.text),),
            function=(Words(", in "), cause.function) if cause.function else (),
            file=(Words(" of "), cause.file) if cause.file else (),
        )
    yield (Words("To see it again:"),)
    yield Listing(culprit.write_command(suite), "sh")


def _describe_steps(creeps: Sequence[Creep]) -> Iterator[Block]:
    for creep in creeps:
        since = {"commit": (creep.since.commit[:_SHOWN],), "metric": (creep.metric,)}
        said = f"{{metric}} since {creep.since.day} ({{commit}}), in steps below the limit."
        yield fill(said, **since)
        if not creep.largest:
            yield (Words("The history of its sessions cannot tell the steps apart."),)
            continue
        yield (Words("The largest steps that its sessions or pairs tell from noise:"),)
        yield Bullets(
            [
                (
                    Words(f"{units.change(each.change)} "),
                    Words(f"by one of {each.commits} commits up to " if each.commits > 1 else ""),
                    each.commit[:_SHOWN],
                    Words(" "),
                    Sentence(each.subject),
                )
                for each in creep.largest
            ]
        )
