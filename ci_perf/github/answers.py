"""What GitHub answers, and writes into the payloads of events; its other keys do not count."""

import msgspec


class Account(msgspec.Struct):
    """A person or a bot."""

    login: str
    type: str = ""


class Repository(msgspec.Struct):
    """A repository; `None` in its place is one that was deleted."""

    id: int = 0
    full_name: str = ""
    owner: Account | None = None
    default_branch: str = ""

    def has_name(self, name: str) -> bool:
        """Whether it is OWNER/NAME, which GitHub writes in any case."""
        return self.full_name.lower() == name.lower()


class Place(msgspec.Struct):
    """A commit, and the branch that it is on."""

    sha: str
    ref: str = ""
    repo: Repository | None = None


class PullRequest(msgspec.Struct):
    """A pull request. The author chooses ``base``, the branch that it shall be merged into."""

    number: int
    head: Place
    base: Place
    state: str = "open"
    draft: bool | None = False
    user: Account | None = None

    @property
    def is_fork(self) -> bool:
        """Whether its head is not known to lie in the repository of its base."""
        head, base = self.head.repo, self.base.repo
        return head is None or base is None or head.id != base.id


class Numbered(msgspec.Struct):
    """What has a number."""

    number: int


class WorkflowRun(msgspec.Struct):
    """A run of a workflow. ``head_repository`` is ``None`` where its fork is gone."""

    id: int
    event: str
    head_sha: str
    repository: Repository
    path: str = ""
    status: str | None = None
    conclusion: str | None = None
    pull_requests: list[Numbered] | None = None
    head_branch: str | None = None
    head_repository: Repository | None = None
    run_attempt: int = 1
    html_url: str = ""

    @property
    def file(self) -> str:
        """The file of its workflow; GitHub adds the ref that it was read from."""
        return self.path.partition("@")[0]

    @property
    def is_fork(self) -> bool:
        """Whether it measured code of another repository."""
        source = self.head_repository
        return source is None or source.id != self.repository.id

    @property
    def label(self) -> str:
        """The branch that it measured, as OWNER:BRANCH; empty where it is gone."""
        source = self.head_repository
        if source is None or source.owner is None or not self.head_branch:
            return ""
        return f"{source.owner.login}:{self.head_branch}"
