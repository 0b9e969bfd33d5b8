"""Baselines that a branch has committed, in real git repositories."""

from dataclasses import dataclass

import msgspec

from ci_perf.baselines import layout
from ci_perf.model.baseline import MAX_SESSIONS, Baseline, RecordedSession
from ci_perf.model.run import Source
from tests import repositories
from tests.repositories import Repository
from tests.runs import CPU, HEAD_COMMIT, SOFT

MACHINE = layout.machine_key(CPU)


def a_recorded(run, *step_s, day=1, reason="", epochs=None, **numbers):
    """One session: a launch for each step time, and the same other numbers in each launch."""
    return RecordedSession(
        recorded_at=f"2026-11-{day:02}T10:00:00Z",
        source=Source(commit=HEAD_COMMIT, branch="main", dirty=False),
        run=run,
        reason=reason,
        epochs=epochs or {},
        tool_version="0.1.0",
        soft=SOFT,
        processes=tuple({"step_time_s": value, **numbers} for value in step_s or (1e-3,)),
    )


def a_committed(*sessions, workload="w", machine=CPU, **more):
    """The file of one workload, oldest session first."""
    plain = Baseline(
        headline={},
        workload=workload,
        suite="smoke",
        parameters={},
        items_per_step=1.0,
        item_unit="step",
        statistic="median",
        machine=machine,
        sessions=sessions[-MAX_SESSIONS:],
    )
    return layout.with_headline(msgspec.structs.replace(plain, **more))


def text(*sessions, **more):
    """The text of such a file."""
    return layout.render(a_committed(*sessions, **more))


@dataclass(frozen=True)
class Branch(Repository):
    """A repository whose commits change files below `baselines`."""

    def accept(
        self, *sessions, day=1, author="maintainer", title="Accept", workload="w", machine=CPU
    ):
        """Commit the file of one workload; return the commit."""
        content = text(*sessions, workload=workload, machine=machine)
        path = f"{layout.machine_key(machine)}/smoke/{workload}.json"
        return self.put({path: content}, day=day, author=author, title=title)

    def put(self, files, *, date="", day=1, author="maintainer", title="Accept"):
        """Write files below `baselines`, remove those that are `None`, and commit all."""
        for name, content in files.items():
            path = self.root / "baselines" / name
            if content is None:
                path.unlink()
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        self.ask("add", "--all")
        date = date or f"2026-11-{day:02}T12:00:00Z"
        self.ask(
            *("-c", f"user.name={author}", "-c", "user.email=a@example.org"),
            *("commit", "--quiet", "--allow-empty", f"--message={title}", f"--date={date}"),
            GIT_COMMITTER_DATE=date,
            GIT_AUTHOR_NAME=author,
        )
        return self.ask("rev-parse", "HEAD")


def init(root):
    """Make an empty repository, whose branch is main."""
    return Branch(repositories.init(root).root)
