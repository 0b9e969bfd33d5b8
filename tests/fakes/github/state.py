"""What a GitHub remembers: repositories, commits, pull requests and what was written to them.

Data only: nothing here knows HTTP, JSON or who is asking.
"""

import hashlib
import itertools
import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

BOT = "github-actions[bot]"
OWNER = "octo"
STRANGER = "mallory"
LEVELS = ("none", "read", "triage", "write", "maintain", "admin")
BEGINNING = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@dataclass
class Repository:
    id: int
    full_name: str
    parent: str | None = None
    private: bool = False
    default_branch: str = "main"
    branches: dict[str, str] = field(default_factory=dict)

    @property
    def owner(self):
        return self.full_name.partition("/")[0]

    @property
    def name(self):
        return self.full_name.partition("/")[2]


class Link(bytes):
    """The text of a symbolic link, in the place of a file."""


class Submodule(bytes):
    """The commit of a submodule, in the place of a file."""


@dataclass(frozen=True)
class Commit:
    """All files of a commit, and those before it."""

    sha: str
    files: dict[str, bytes]
    parents: tuple[str, ...]
    message: str
    author: str
    date: str


@dataclass
class Pull:
    number: int
    base_branch: str
    base_sha: str
    head_repository: str | None
    head_branch: str
    head_sha: str
    author: str
    draft: bool
    state: str
    merged_as: str = ""


@dataclass
class Issue:
    number: int
    author: str
    title: str
    bodies: list[str]
    assignees: list[str]
    state: str = "open"
    state_reason: str | None = None

    @property
    def body(self):
        return self.bodies[-1]


@dataclass
class Comment:
    id: int
    number: int
    author: str
    bodies: list[str]
    created_at: str
    updated_at: str
    minimized: bool = False

    @property
    def body(self):
        return self.bodies[-1]


@dataclass
class CheckRun:
    id: int
    head_sha: str
    name: str
    status: str
    conclusion: str | None
    completed_at: str | None
    external_id: str
    output: dict[str, str | None]
    annotations: list[dict[str, object]] = field(default_factory=list)
    history: list[tuple[str, str | None]] = field(default_factory=list)


@dataclass
class Run:
    id: int
    event: str
    path: str
    status: str
    conclusion: str | None
    attempt: int
    head_sha: str
    head_branch: str
    head_repository: str | None
    name: str = "perf"
    inputs: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Artifact:
    id: int
    run_id: int
    name: str
    archive: bytes
    expired: bool
    digest: str
    size: int  # what GitHub says of the archive


class State:
    """Everything there is, of one repository and of forks of it."""

    def __init__(self, full_name, fork):
        self._ids = itertools.count(1001)
        self._seconds = itertools.count()
        self.repositories = {
            full_name: Repository(self.next_id(), full_name),
            fork: Repository(self.next_id(), fork, parent=full_name),
        }
        self.commits: dict[str, Commit] = {}
        # GitHub says "truncated" of a tree with more.
        self.most_tree_items = 100_000
        self.pulls: dict[int, Pull] = {}
        self.issues: dict[int, Issue] = {}
        self.comments: dict[int, Comment] = {}
        self.checks: dict[int, CheckRun] = {}
        self.runs: dict[int, Run] = {}
        # Files on the default branch that `workflow_dispatch` can start.
        self.workflows = {"asked.yml"}
        self.artifacts: dict[int, Artifact] = {}
        self.levels: dict[str, str] = {OWNER: "admin", BOT: "write"}

    def next_id(self):
        return next(self._ids)

    def now(self):
        """Every look at the clock is a second later, so that an order can be seen."""
        moment = BEGINNING + timedelta(seconds=next(self._seconds))
        return moment.strftime("%Y-%m-%dT%H:%M:%SZ")

    # --- git

    def write_commit(self, files, parents=(), *, sha=None, message="a commit", author=OWNER):
        """Write a commit that has these files beside those of its first parent, less None."""
        before = dict(self.commits[parents[0]].files) if parents else {}
        changed = {path: _as_bytes(content) for path, content in files.items()}
        after = {p: c for p, c in {**before, **changed}.items() if c is not None}
        date = self.now()
        listed = {path: blob_sha(content) for path, content in after.items()}
        text = json.dumps([listed, list(parents), message, date], sort_keys=True)
        sha = sha or hashlib.sha1(text.encode()).hexdigest()
        self.commits[sha] = Commit(sha, after, tuple(parents), message, author, date)
        return sha

    def move_branch(self, repository, branch, sha):
        """Let a branch point to a commit; open pull requests from it move along."""
        repository.branches[branch] = sha
        for pull in self.pulls.values():
            head = (pull.head_repository, pull.head_branch)
            if pull.state == "open" and head == (repository.full_name, branch):
                pull.head_sha = sha

    def resolve(self, repository, ref):
        """Return the commit that a branch, a sha or a full reference means, or None."""
        name = ref.removeprefix("refs/").removeprefix("heads/")
        if name in repository.branches:
            return repository.branches[name]
        return ref if ref in self.commits else None

    def history(self, sha):
        """Return this commit and all before it, the newest first."""
        found, waiting = [], [sha]
        while waiting:
            one = waiting.pop(0)
            if one not in found:
                found.append(one)
                waiting += self.commits[one].parents
        return found

    def blob(self, sha):
        """Return the content of this sha, or None."""
        for commit in self.commits.values():
            for content in commit.files.values():
                if blob_sha(content) == sha:
                    return content
        return None

    def changed_files(self, pull):
        """Return what a pull request does to each file: (path, before, after), None for neither."""
        before, after = self.commits[pull.base_sha].files, self.commits[pull.head_sha].files
        for path in sorted({*before, *after}):
            if before.get(path) != after.get(path):
                yield path, before.get(path), after.get(path)

    # --- what is written to a pull request

    def add_comment(self, number, body, author):
        now = self.now()
        comment = Comment(self.next_id(), number, author, [body], now, now)
        self.comments[comment.id] = comment
        return comment

    def comments_of(self, number):
        return [c for c in self.comments.values() if c.number == number]

    def edit_comment(self, comment, body):
        comment.bodies.append(body)
        comment.updated_at = self.now()


def git_mode(content):
    """Return the mode and the type that git lists for what is at a path."""
    if isinstance(content, Submodule):
        return "160000", "commit"
    return ("120000" if isinstance(content, Link) else "100644"), "blob"


def commit_sha(content):
    """Return the commit that a submodule stands at."""
    return content.decode()


def blob_sha(content):
    """Return the name that git gives to a file's content."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def _as_bytes(content):
    return content.encode() if isinstance(content, str) else content
