"""The step of `ci-perf publish` that needs GitHub: what the event allows is posted there.

Whatever fails here is noted and said; it changes no verdict.
"""

import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from ci_perf import suite
from ci_perf.cli import options, output
from ci_perf.errors import CiPerfError, ExitCode
from ci_perf.github import access, checks, comment, pulls, sections
from ci_perf.github.actions import Event, EventKind
from ci_perf.github.checks import Annotation, CheckRun, CommitStatus, Conclusion
from ci_perf.github.client import Client
from ci_perf.github.comment import CommentOutcome, PostedComment
from ci_perf.github.pulls import OpenPull
from ci_perf.model.comparison import Comparison, Verdict
from ci_perf.pull_request import baseline_changes
from ci_perf.report import accept_help, publication, pull_request_notes
from ci_perf.report.accept_help import AcceptHint
from ci_perf.report.escape import Markdown
from ci_perf.report.phrases import Phrase
from ci_perf.report.publication import Extras, Origin
from ci_perf.report.pull_request_notes import BaselineEdit

_UNDECIDED = {Verdict.INCONCLUSIVE, Verdict.LIKELY_SLOWER, Verdict.UNCONFIRMED}
# Where there is something that accepting changes, and no rule against it.
_ACCEPTABLE = set(Verdict) - {Verdict.UNCHANGED, Verdict.INVALID, Verdict.INCONCLUSIVE}
_NOTHING = PostedComment(outcome=CommentOutcome.SKIPPED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What the command line asks for, where the event allows it."""

    comment: bool
    check: bool
    status: bool
    summary: bool
    skip_if_unchanged: bool
    key: str | None
    workloads: Path
    baselines: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A comparison, the machine that it is about, and the artifact that its run lies in.

    ``own`` is the same run by the baselines that the pull request brings, where that is known.
    ``trust_notes`` is what was not believed of the run.
    """

    comparison: Comparison
    machine: str
    artifact: str = accept_help.USUAL_ARTIFACT
    own: Comparison | None = None
    trust_notes: tuple[Phrase, ...] = ()

    @property
    def name(self) -> str:
        """What a check or a status is called: one per machine, so no two jobs share it."""
        return f"ci-perf: {self.comparison.suite} on {self.machine}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What is reported, where, and what went wrong so far."""

    reports: Sequence[Report]
    wishes: Wishes
    environment: Mapping[str, str]
    event: Event
    problems: list[str] = field(default_factory=list)
    is_judged_by_base: bool = False

    @contextmanager
    def noting(self) -> Iterator[None]:
        """Note what goes wrong inside, and go on."""
        with noting(self.problems, self.environment):
            yield

    def origin(self, pull: OpenPull | None) -> Origin:
        """Say where the comparisons were measured, and for which branch they are judged."""
        return Origin(
            url=self.event.run.url,
            attempt=self.event.run.attempt,
            is_fork=pull.is_fork if pull else self.event.is_fork,
            base=self.base(pull),
        )

    def base(self, pull: OpenPull | None) -> str:
        """Name the branch that a pull request is judged for.

        That is the branch of this job where this job judges, else the base when the event happened.
        """
        if pull is None:
            return ""
        known = self.event.branch if self.is_judged_by_base else self.event.base
        return known or pull.base_branch


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pull:
    """The pull request that is reported on, and what it does to baselines."""

    found: OpenPull
    edits: Sequence[BaselineEdit]


@contextmanager
def noting(problems: list[str], environment: Mapping[str, str]) -> Iterator[None]:
    """Note what goes wrong inside, and go on: a report that fails is no verdict."""
    try:
        yield
    except CiPerfError as error:
        problems.append(str(error))
    except Exception as error:  # noqa: BLE001  a bug of ours must not change the verdict either
        token = environment.get("GITHUB_TOKEN") or "\0"
        output.say(traceback.format_exc().replace(token, "***"))
        problems.append(f"this is a bug in ci-perf, please report it ({type(error).__name__})")


def post(job: Job) -> PostedComment:
    """Write to GitHub what is wished and allowed; return what became of the comment."""
    wishes, event = job.wishes, job.event
    if event.kind is EventKind.NONE or not (wishes.comment or wishes.check or wishes.status):
        return _NOTHING
    if event.is_read_only:
        output.say(
            "nothing posted: the token of a pull request from a fork, or of Dependabot, may only "
            "read; docs/github.md shows the job that may post. The report is in the job summary"
        )
        return _NOTHING
    has_pull = bool(event.pull or event.head) and not event.is_closed
    if not has_pull and wishes.comment:
        output.say("no comment: no open pull request belongs to this event")
    if not has_pull and not (event.sha and (wishes.check or wishes.status)):
        return _NOTHING
    client = Client(access.of_job(job.environment, job.event.repository))
    return _post(job, client, has_pull=has_pull)


def _post(job: Job, client: Client, *, has_pull: bool) -> PostedComment:
    """Post one thing after the other: what fails keeps nothing else from being posted."""
    posted, pull, wishes = _NOTHING, None, job.wishes
    with job.noting():
        pull = _pull(job, client) if has_pull else None
        if has_pull and wishes.comment:
            posted = _comment(job, client, pull)
    if not (wishes.check or wishes.status) or not (sha := _sha(job, pull)):
        return posted
    if wishes.check:
        with job.noting():
            _put_checks(job, client, pull, sha)
    if wishes.status:
        with job.noting():
            _put_statuses(job, client, pull, sha)
    return posted


def _pull(job: Job, client: Client) -> _Pull | None:
    found = pulls.find(client, job.event)
    if found is None:
        return None
    edits: list[BaselineEdit] = []
    with job.noting():
        edits = baseline_changes.look(client, found, job.wishes.baselines)
    return _Pull(found=found, edits=edits)


def _comment(job: Job, client: Client, pull: _Pull | None) -> PostedComment:
    posted = _NOTHING
    if pull is None:
        output.say(
            "no comment: no open pull request has the measured commit at its head; it was closed, "
            "or a newer commit will be reported"
        )
        return posted
    for key, reports in _by_key(job).items():
        posted = comment.put(
            client,
            pull.found.number,
            key,
            [_draft(job, one, pull) for one in reports],
            is_skippable=_is_skippable(job, pull, reports),
        )
        output.say(f"comment {posted.outcome.value}" + (f": {posted.url}" if posted.url else ""))
    return posted


def _by_key(job: Job) -> dict[str, list[Report]]:
    """Group reports by the comment that they stand in."""
    groups: dict[str, list[Report]] = {}
    for one in job.reports:
        groups.setdefault(job.wishes.key or one.comparison.suite, []).append(one)
    return groups


def _draft(job: Job, one: Report, pull: _Pull) -> sections.Draft:
    origin = job.origin(pull.found)
    beside = _beside(job, one, pull)
    return sections.Draft(
        name=sections.name(one.machine),
        run=job.event.run.number,
        attempt=job.event.run.attempt,
        brief=publication.brief(one.comparison, origin, beside),
        rest=lambda size: publication.rest(one.comparison, origin, max_bytes=size, extras=beside),
    )


def _beside(job: Job, one: Report, pull: _Pull) -> Extras:
    """Say what the pull request does to baselines, and how its numbers become some."""
    run, found = job.event.run.number, pull.found
    hint = AcceptHint(
        pull=found.number,
        run=run,
        artifact=one.artifact,
        baselines=str(baseline_changes.in_repository(job.wishes.baselines)),
        sha="" if found.is_fork else found.sha,
    )
    steps = accept_help.folded(hint) if run and one.comparison.verdict in _ACCEPTABLE else ""
    parts = (pull_request_notes.baseline_table(pull.edits), steps)
    edits = pull_request_notes.baseline_note(
        pull.edits, one.own, is_judged_by_base=job.is_judged_by_base
    )
    return Extras(
        note=Markdown(
            "\n\n".join(filter(None, (pull_request_notes.trust_note(one.trust_notes), edits)))
        ),
        folded=Markdown("\n".join(filter(None, parts))),
    )


def doubted(one: Report) -> Extras:
    """Say what was not believed, where nothing is known of a pull request."""
    return Extras(note=pull_request_notes.trust_note(one.trust_notes), folded=Markdown(""))


def _is_skippable(job: Job, pull: _Pull, reports: Sequence[Report]) -> bool:
    is_quiet = all(map(_is_quiet, reports)) and not pull.edits
    return job.wishes.skip_if_unchanged and is_quiet


def _is_quiet(one: Report) -> bool:
    is_fine = one.comparison.exit_code == ExitCode.OK and not one.trust_notes
    return is_fine and one.comparison.verdict is Verdict.UNCHANGED


def _sha(job: Job, pull: _Pull | None) -> str:
    """Choose the commit that a check hangs on: never one that was not measured."""
    if job.event.sha:
        return job.event.sha
    measured = {one.comparison.head.source.commit for one in job.reports}
    if pull is not None and measured == {pull.found.sha}:
        return pull.found.sha
    output.say("no check and no status: it is not known which commit of GitHub was measured")
    return ""


def _put_checks(job: Job, client: Client, pull: _Pull | None, sha: str) -> None:
    changed: frozenset[str] = frozenset()
    if pull is not None:
        with job.noting():
            changed = pulls.changed_files(client, pull.found.number)
    for one in job.reports:
        with job.noting():
            made = _check(job, one, changed, pull)
            output.say(f"check {made.conclusion.value}: {checks.put_check(client, sha, made)}")


def _check(job: Job, one: Report, changed: frozenset[str], pull: _Pull | None) -> CheckRun:
    run, found = job.event.run, pull.found if pull else None
    origin = job.origin(found)
    beside = _beside(job, one, pull) if pull else doubted(one)
    return CheckRun(
        name=one.name,
        identity=f"ci-perf/{run.number}/{run.attempt}/{job.wishes.key or ''}",
        conclusion=_conclusion(one.comparison),
        title=publication.title(one.comparison, base=job.base(found)),
        summary=publication.whole(
            one.comparison, origin, max_bytes=checks.MAX_CHARS, extras=beside
        ),
        annotations=_annotations(job, one.comparison, changed),
        url=run.url,
    )


def _conclusion(comparison: Comparison) -> Conclusion:
    """Say as a check what the exit code says; what is undecided neither passes nor blames."""
    if comparison.exit_code != ExitCode.OK:
        return Conclusion.FAILURE
    return Conclusion.NEUTRAL if comparison.verdict in _UNDECIDED else Conclusion.SUCCESS


def _annotations(job: Job, comparison: Comparison, changed: frozenset[str]) -> list[Annotation]:
    """Show findings beside the workload files that the pull request itself changes."""
    files = _files(job, comparison) if changed else {}
    found = []
    for one in publication.file_notes(comparison):
        name = files.get(one.workload, f"{one.workload.partition('.')[0]}.py")
        path = str(PurePosixPath(job.wishes.workloads, name))
        if path in changed:
            found.append(
                Annotation(path=path, level=one.level, title=one.title, message=one.message)
            )
    return found


def _files(job: Job, comparison: Comparison) -> dict[str, str]:
    """Name the file of each workload; none, where suite.toml cannot be read."""
    try:
        plan = suite.plan(job.wishes.workloads, comparison.suite, root=options.root())
    except CiPerfError:
        return {}
    return {one.id: PurePosixPath(one.file).name for one in plan.workloads}


def _put_statuses(job: Job, client: Client, pull: _Pull | None, sha: str) -> None:
    base = job.base(pull.found if pull else None)
    for one in job.reports:
        said = CommitStatus(
            context=one.name,
            state=_state(one.comparison),
            description=publication.title(
                one.comparison, base=base, max_chars=checks.MAX_STATUS_CHARS
            ),
            url=job.event.run.url,
        )
        with job.noting():
            checks.put_status(client, sha, said)
            output.say(f"status {said.state}: {said.context}")


def _state(comparison: Comparison) -> checks.StatusState:
    if comparison.exit_code == ExitCode.OK:
        return "success"
    return "failure" if comparison.exit_code == ExitCode.REGRESSED else "error"
