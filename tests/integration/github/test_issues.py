"""`ci-perf github issue`: the life of an issue, from the nights of a watch."""

import itertools
from typing import Any

import msgspec
import pytest

from ci_perf.cli.main import cli
from ci_perf.errors import UsageError
from ci_perf.model.watch import LossCause, Person, WatchedRepository
from ci_perf.system import files
from tests.fakes.github import faults
from tests.fakes.github.fixtures import on_github_and_ghes
from tests.fakes.github.state import BOT
from tests.projects import Done
from tests.watches import a_creep, a_culprit, a_sha, a_watch

AUTHOR = "ada"
CODEOWNERS = "# who owns what\n* @octo/all\n/model.py @octo/perf @grace # both\n/docs/ @writer\n"


class Night:
    """A job with a token after each night, in a repository whose main has a culprit."""

    def __init__(self, stage):
        self.stage, self.github = stage, stage.github
        self.github.permissions = {"contents": "read", "issues": "write", "pull_requests": "read"}
        self.root = self.github.push("main", {"model.py": "1"})
        self.culprit = self.github.push("main", {"model.py": "2"}, author=AUTHOR)
        self.head = self.github.push("main", {"README": "more"})
        for login in (AUTHOR, "grace"):
            self.github.set_permission(login, "write")
        stage.environment(**self.github.environment(), GITHUB_SHA=self.head)

    def watched(self, state="open", *workloads, **more: Any):
        fields = {"state": state, "commit": self.culprit, **more}
        return self.watch(a_culprit(7, *workloads, **fields))

    def watch(self, *culprits, creeps=(), **more: Any):
        home = WatchedRepository(root=self.root, name=self.github.repository)
        fields = {"repository": home, "head": self.head, **more}
        return a_watch(culprits=culprits, creeps=creeps, **fields)

    def ends(self, *watches):
        """Call the command in this process: only the clock is not real."""
        paths = [self.stage.folder / f"watch{number}.json" for number in range(len(watches))]
        for path, watched in zip(paths, watches, strict=True):
            files.write(path, watched)
        words = ["github", "issue", *map(str, paths)]
        code = cli(words, prog_name="ci-perf", standalone_mode=False)
        out, err = self.stage.capfd.readouterr()
        return Done(int(code or 0), out, err)

    @property
    def issues(self):
        return list(self.github.state.issues.values())

    @property
    def issue(self):
        (issue,) = self.issues
        return issue

    @property
    def comments(self):
        return [each.body for each in self.github.comments(self.issue.number)]


@pytest.fixture
def night(stage):
    return Night(stage)


@on_github_and_ghes
def test_an_issue_is_opened_for_its_author_with_all_that_is_known(night):
    night.github.add_pull(3).merged_as = night.culprit
    done = night.ends(night.watched())

    assert done.code == 0, done.err
    assert "opened http" in done.err
    assert night.issue.title == f"ci-perf: a became worse in {night.culprit[:12]}"
    assert night.issue.assignees == [AUTHOR]
    body = night.issue.body
    assert body.startswith(f"<!-- ci-perf:loss={night.culprit} state=open of=")
    for part in (
        f"{night.culprit} by `Ada`: `Copy the weights`. Pull request: #3.",
        "of 19 commits after `000000000000`, up to `000000000000`",
        "| `a` | step time | +10.0 % [+8.0, +12.0] | 10.0 → 11.0 ms |",
        "Cause: `copy 1 → 3 calls`, in `forward` of `model.py`",
        f"```sh\nci-perf bisect {a_sha(6)[:12]} {night.culprit[:12]} a --metric step_time_s",
        " --suite smoke\n```",
    ):
        assert part in body


def test_many_workloads_of_one_culprit_are_one_issue(night):
    names = [f"w{number:02}" for number in range(28)]
    night.ends(night.watched("open", *names))

    assert night.issue.title.startswith("ci-perf: w00 and 27 others became worse")
    assert all(f"`{name}`" in night.issue.body for name in names)


def test_the_next_nights_update_it_and_repeat_nothing(night):
    night.ends(night.watched())
    night.ends(night.watched())
    assert len(night.issue.bodies) == 1, "nothing is new"

    night.issue.assignees = ["somebody"]
    night.issue.title = "ours now"
    night.ends(night.watched(checked="2026-11-30"))

    assert "Last answer: 2026-11-30" in night.issue.body
    assert (night.issue.title, night.issue.assignees) == ("ours now", ["somebody"])
    assert night.comments == []


def test_a_night_without_an_answer_closes_nothing(night):
    night.ends(night.watched())
    night.ends(night.watched(reason="no answer"), night.watch(complete=False, suite="other"))
    night.ends(night.watch(complete=False))

    assert night.issue.state == "open"


@pytest.mark.parametrize(
    ("state", "more", "reason", "said"),
    [
        ("repaired", {}, "completed", "Closed: the loss is repaired: `why`"),
        (
            "accepted",
            {"until": "2027-01-31"},
            "not_planned",
            "Closed: the loss is accepted until 2027-01-31: `why`",
        ),
    ],
)
def test_it_is_closed_with_a_comment_that_says_why(night, state, more, reason, said):
    night.ends(night.watched())
    for _ in range(2):
        night.ends(night.watched(state, reason="why", **more))

    assert (night.issue.state, night.issue.state_reason) == ("closed", reason)
    assert [comment.strip() for comment in night.comments] == [said]


def test_nothing_is_opened_that_was_closed_before_anybody_heard_of_it(night):
    assert night.ends(night.watched("repaired")).code == 0
    assert night.issues == []


def test_it_opens_again_after_the_day_of_an_acceptance(night):
    night.ends(night.watched())
    night.ends(night.watched("accepted", until="2027-01-31", reason="a new kernel"))
    night.ends(night.watched(until="2027-01-31", reason="accepted until 2027-01-31"))

    assert (night.issue.state, night.issue.state_reason) == ("open", "reopened")
    assert night.comments[-1].startswith("Open again, because the loss is open: `accepted until")


def test_what_a_person_has_closed_stays_closed_until_an_acceptance_runs_out(night):
    night.ends(night.watched())
    night.issue.state = "closed"
    done = night.ends(night.watched(checked="2026-11-30"))
    assert "a person has closed it; it stays closed" in done.err
    assert (night.issue.state, len(night.issue.bodies)) == ("closed", 1)

    night.ends(night.watched("accepted", until="2027-01-31"))
    assert (night.issue.state, night.comments) == ("closed", [])
    night.ends(night.watched())

    assert night.issue.state == "open"


@pytest.mark.parametrize("body", ["", "edited", "<!-- ci-perf:loss=x -->\nmore"])
def test_a_lost_mark_repeats_no_issue(night, body):
    night.ends(night.watched())
    night.issue.bodies.append(body)
    done = night.ends(night.watched())

    assert f"issue #{night.issue.number}: its mark is lost or edited" in done.err
    assert night.issue.body.startswith("<!-- ci-perf:loss=")


def test_a_mark_or_title_by_somebody_else_is_not_ours(night):
    night.ends(night.watched())
    night.issue.author = "mallory"
    night.ends(night.watched("repaired"))
    assert night.issue.state == "open"

    night.ends(night.watched())
    assert [issue.author for issue in night.issues] == ["mallory", BOT]


def test_a_pull_request_of_the_bot_is_no_issue(night):
    night.github.add_pull(3, author=BOT)

    assert night.ends(night.watched()).code == 0


@pytest.mark.parametrize(
    ("codeowners", "owner", "assigned", "mentioned"),
    [
        (CODEOWNERS, "@octo/last", ["grace"], "For @octo/perf."),
        ("docs/ @writer\n", "@octo/last", [], "For @octo/last."),
        (None, "grace", ["grace"], ""),
        (None, "everybody, please", [], ""),
    ],
)
def test_without_an_author_on_github_its_owner_is_asked(
    night, codeowners, owner, assigned, mentioned
):
    culprit = night.github.push("main", {"model.py": "3"}, author="a@example.org")
    head = night.github.push("main", {".github/CODEOWNERS": codeowners})
    night.stage.environment(GITHUB_SHA=head)
    night.ends(night.watched(commit=culprit, owner=owner))

    assert night.issue.assignees == assigned
    assert ("For @" in night.issue.body) == bool(mentioned)
    assert mentioned in night.issue.body


def test_two_machines_share_an_issue_and_one_of_them_alone_does_not_close_it(night):
    other, mended = (
        msgspec.structs.replace(night.watched(state), suite="large")
        for state in ("open", "repaired")
    )
    night.ends(night.watched(), other)
    assert night.issue.body.count("| `a` |") == 2

    done = night.ends(night.watched("repaired"))
    assert "left as it is, for there is no watch of" in done.err
    night.ends(night.watched("repaired"), other)
    assert night.issue.state == "open"
    night.ends(mended)

    assert night.issue.state == "closed", "only the machine that still showed it is asked"


@pytest.mark.parametrize("suite", ["builtin:smoke", "no-builtin-smoke"])
def test_the_command_of_an_issue_names_the_suite(night, suite):
    night.ends(night.watch(a_culprit(7, commit=night.culprit), suite=suite))

    assert f" --suite {suite}\n" in night.issue.body


def test_a_creep_is_an_issue_of_its_own_kind(night):
    creep = a_creep(owner="@octo/perf")
    night.ends(night.watch(creeps=(creep, a_creep(metric="step_p95_s"))))

    assert ": a became worse in small steps on " in night.issue.title
    assert "since 2026-10-01" in night.issue.body
    assert "- +2.0 % `000000000000` `Check the input`" in night.issue.body
    assert "- +1.5 % by one of 4 commits up to `000000000000` `Log more`" in night.issue.body
    assert "For @octo/perf." in night.issue.body
    night.ends(night.watch(creeps=(creep, a_creep(metric="step_p95_s", state="repaired"))))
    assert "step_p95_s" not in night.issue.body
    night.ends(night.watch(creeps=(a_creep(largest=()),)))
    assert "cannot tell the steps apart" in night.issue.body
    night.ends(night.watch(creeps=(a_creep(state="repaired"),)))
    assert night.issue.state == "closed"


def test_a_creep_that_a_baseline_accepts_is_closed_with_its_reason(night):
    night.ends(night.watch(creeps=(a_creep(),)))
    accepted = a_creep(state="accepted", reason="a better loss", until="2026-12-31")

    night.ends(night.watch(creeps=(accepted,)))

    assert (night.issue.state, night.issue.state_reason) == ("closed", "not_planned")
    assert "State: accepted until 2026-12-31: `a better loss`." in night.issue.body


def test_nothing_foreign_is_obeyed(night):
    """Nothing mentions, links, closes or ends a block; the first line is our mark alone."""
    bad = '`@all` <!-- ci-perf:loss=x --> </details>\n```\n# closes #1 | "x" ![](https://x.y)'
    night.ends(
        night.watched(
            subject=bad,
            author=Person(name=bad),
            cause=LossCause(text=bad, function=bad, file=bad),
            reason=bad,
            owner=bad,
        )
    )
    body = night.issue.body

    assert body.count("<!-- ci-perf:") == 1
    outside = "".join(text for text in _outside_code(body))
    for part in ("@all", "</details>", "#1", "![]", "# closes"):
        assert part not in outside


def _outside_code(body):
    """Yield what is in no code span and in no fence, as CommonMark pairs runs of backticks."""
    runs = list(itertools.chain.from_iterable(_split_runs(body)))
    place = 0
    while place < len(runs):
        part = runs[place]
        if part.startswith("`") and part in runs[place + 1 :]:
            place = runs.index(part, place + 1) + 1
        else:
            yield part
            place += 1


def _split_runs(body):
    for is_run, letters in itertools.groupby(body, lambda letter: letter == "`"):
        del is_run
        yield ["".join(letters)]


@pytest.mark.parametrize("name", ["org/other", None])
def test_a_watch_of_another_repository_is_refused(night, name):
    root = a_sha(1) if name is None else night.root
    watched = night.watch(repository=WatchedRepository(root=root, name=name))

    with pytest.raises(UsageError, match=f"expected a watch of {night.github.repository}, found"):
        night.ends(watched)
    assert night.github.sent("POST", "/issues") == []


def test_a_commit_that_is_not_in_the_history_changes_nothing(night):
    night.ends(night.watched())
    gone = night.github.push("side", {"model.py": "9"})
    done = night.ends(night.watched(commit=gone))

    assert f"commit {gone[:12]} is not in the history of {night.head[:12]}" in done.err
    assert len(night.issues) == 1


def test_a_refusal_of_one_issue_stops_no_other(night):
    second = night.github.push("main", {"model.py": "3"}, author=AUTHOR)
    night.stage.environment(GITHUB_SHA=second)
    night.github.fail_next("POST", "/issues$", faults.NOT_ACCESSIBLE)
    both = night.watch(
        a_culprit(7, commit=night.culprit), a_culprit(7, commit=second, first_seen="2026-11-30")
    )
    done = night.ends(both)

    assert done.code == 3
    assert f"warning: ci-perf: a became worse in {night.culprit[:12]}" in done.err
    assert night.issue.title.endswith(second[:12])


def test_an_issue_whose_answer_was_lost_is_not_repeated(night):
    night.github.fail_next("POST", "/issues$", faults.BAD_GATEWAY.after_the_work())
    assert night.ends(night.watched()).code == 3
    assert night.ends(night.watched()).code == 0

    assert len(night.issues) == 1


def test_a_night_opens_a_few_issues_and_says_of_the_others_that_it_does_not(night):
    commits = [night.github.push("main", {"model.py": f"{n}"}, author=AUTHOR) for n in range(12)]
    night.stage.environment(GITHUB_SHA=commits[-1])
    done = night.ends(night.watch(*(a_culprit(7, commit=each) for each in commits)))

    assert len(night.issues) == 10
    assert done.err.count("the next night opens it") == 2
