"""A GitHub to test against: what tests put there, and what they find afterwards.

See README.md of this folder.
"""

import hashlib
import io
import itertools
import re
import zipfile

from tests.fakes.github import events, faults
from tests.fakes.github.access import OF_A_FORK, Access
from tests.fakes.github.delivery import Delivery, Host, Planned
from tests.fakes.github.server import Api, Blobs
from tests.fakes.github.state import (
    BOT,
    LEVELS,
    OWNER,
    STRANGER,
    Artifact,
    Pull,
    Run,
    State,
)

REPOSITORY = f"{OWNER}/model"
FORK = f"{STRANGER}/model"
WORKFLOW = ".github/workflows/perf.yml"
# Whatever proxy this machine has, it does not lead here; some clients read only one of these.
DIRECTLY = dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1,127.0.0.2")
HEAD, BASE = "a" * 40, "b" * 40


class FakeGitHub:
    """One GitHub with one repository and a fork of it, from now until it is closed."""

    repository = REPOSITORY
    fork = FORK
    token = "ghs_" + "T" * 36

    def __init__(self, flavour="github.com"):
        self.flavour = flavour
        self.state = State(REPOSITORY, FORK)
        self._access = Access(self.state, REPOSITORY, self.token)
        self._delivery = Delivery()
        self._blobs = Blobs(self.state, self._delivery)
        # Another address of this machine is another host to a client.
        self._blob_host = Host("127.0.0.2", self._blobs.application)
        self._delivery.elsewhere = self._blob_host.url
        self._api = Api(flavour, self.state, self._access, self._delivery)
        self._host = Host("127.0.0.1", self._api.application)
        self.server_url = self._host.url
        self.url = self.server_url + self._api.prefix
        self.graphql_url = self.server_url + self._api.graphql_path
        self._api.forms.html = self.server_url
        self._people = itertools.count(1)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self._delivery.close()
        self._host.close()
        self._blob_host.close()

    # --- where it is, who asks

    @property
    def repository_id(self):
        return self._home.id

    @property
    def _home(self):
        return self.state.repositories[REPOSITORY]

    def environment(self):
        """Return what a runner would tell a step of a job."""
        return {
            "GITHUB_ACTIONS": "true",
            "GITHUB_API_URL": self.url,
            "GITHUB_GRAPHQL_URL": self.graphql_url,
            "GITHUB_SERVER_URL": self.server_url,
            "GITHUB_REPOSITORY": REPOSITORY,
            "GITHUB_REPOSITORY_ID": str(self.repository_id),
            "GITHUB_TOKEN": self.token,
            **DIRECTLY,
        }

    @property
    def permissions(self):
        return self._access.permissions

    @permissions.setter
    def permissions(self, permissions):
        self._access.permissions = dict(permissions)

    def read_only(self):
        """From now on the job is one of a pull request from a fork."""
        self.permissions = OF_A_FORK

    def add_token(self, login):
        """Return the token of a person."""
        token = f"ghp_{login}_{next(self._people)}"
        self._access.add(token, login)
        return token

    def set_permission(self, login, level):
        """Say what a person may do in the repository."""
        assert level in LEVELS, level
        self.state.levels[login] = level

    def make_private(self):
        """Hide the repository from strangers."""
        self._home.private = True

    # --- what is there

    def add_pull(
        self,
        number,
        *,
        head_sha=HEAD,
        base_sha=BASE,
        fork=False,
        draft=False,
        state="open",
        head_branch="feature",
        base_branch="main",
        author="octocat",
        files=None,
        base_files=None,
    ):
        """Open a pull request, with the two branches that it is about."""
        head = self.state.repositories[FORK if fork else REPOSITORY]
        if base_sha not in self.state.commits:
            self.state.write_commit(base_files or {}, sha=base_sha)
        if head_sha not in self.state.commits:
            self.state.write_commit(files or {}, (base_sha,), sha=head_sha, author=author)
        self._home.branches.setdefault(base_branch, base_sha)
        head.branches[head_branch] = head_sha
        self.state.pulls[number] = Pull(
            number=number,
            base_branch=base_branch,
            base_sha=base_sha,
            head_repository=head.full_name,
            head_branch=head_branch,
            head_sha=head_sha,
            author=author,
            draft=draft,
            state=state,
        )
        return self.state.pulls[number]

    def push(self, branch, files, *, fork=False, author=OWNER, message="a commit"):
        """Commit to a branch, a new one if there is none; return the commit."""
        repository = self.state.repositories[FORK if fork else REPOSITORY]
        parents = tuple(filter(None, [repository.branches.get(branch)]))
        sha = self.state.write_commit(files, parents, message=message, author=author)
        self.state.move_branch(repository, branch, sha)
        return sha

    def delete_fork(self):
        """Let the fork be gone; its pull requests stay."""
        del self.state.repositories[FORK]

    def add_comment(self, number, body, *, author=BOT):
        """Write a comment, by default one of the job's own."""
        return self.state.add_comment(number, body, author)

    def forge_comments(self, number, marker, *, count=250, author=STRANGER):
        """Write many comments of other people; the last begins with our marker."""
        for index in range(count - 1):
            self.state.add_comment(number, f"comment {index}", "alice")
        return self.state.add_comment(number, f"{marker}\nforged", author)

    def add_run(
        self,
        run_id,
        *,
        head_sha=HEAD,
        fork=False,
        event="pull_request",
        path=WORKFLOW,
        head_branch="feature",
        status="completed",
        conclusion="success",
        attempt=1,
    ):
        """Add a run of a workflow."""
        if head_sha not in self.state.commits:
            self.state.write_commit({}, sha=head_sha)
        self.state.runs[run_id] = Run(
            id=run_id,
            event=event,
            path=path,
            status=status,
            conclusion=conclusion,
            attempt=attempt,
            head_sha=head_sha,
            head_branch=head_branch,
            head_repository=FORK if fork else REPOSITORY,
        )
        return self.state.runs[run_id]

    def add_artifact(self, run_id, name, files, *, expired=False, digest=None, size=None):
        """Add an artifact: its files by name, or the bytes of its archive.

        `size` is what GitHub says of its bytes, where that is not the truth.
        """
        archive = files if isinstance(files, bytes) else _archive(files)
        artifact = Artifact(
            id=self.state.next_id(),
            run_id=run_id,
            name=name,
            archive=archive,
            expired=expired,
            digest=digest or f"sha256:{hashlib.sha256(archive).hexdigest()}",
            size=len(archive) if size is None else size,
        )
        self.state.artifacts[artifact.id] = artifact
        return artifact

    # --- what came of it

    def comments(self, number):
        return self.state.comments_of(number)

    def checks(self, sha):
        return [check for check in self.state.checks.values() if check.head_sha == sha]

    def head(self, branch, *, fork=False):
        """Return the commit that a branch points to, or None."""
        return self.state.repositories[FORK if fork else REPOSITORY].branches.get(branch)

    def commit(self, ref, *, fork=False):
        """Return the commit that a branch or a sha means."""
        repository = self.state.repositories[FORK if fork else REPOSITORY]
        return self.state.commits[self.state.resolve(repository, ref)]

    def file(self, ref, path):
        """Return the content of a file at a branch or a sha, or None."""
        return self.commit(ref).files.get(path)

    @property
    def requests(self):
        return self._api.requests

    def sent(self, method, path):
        """Return the requests of this method whose path matches."""
        return [r for r in self.requests if r.method == method and re.search(path, r.path)]

    @property
    def blob_requests(self):
        return self._blobs.requests

    @property
    def violations(self):
        return self._api.violations

    # --- faults and events

    def fail_next(self, method, path, fault, times=1):
        """Let the next requests that match go wrong in this way."""
        assert isinstance(fault, faults.Fault), fault
        self._delivery.plan(Planned(method, path, fault, times))

    def event(self, name, action=None, **details):
        """Return the payload of an event, as a runner writes it to a file."""
        return events.payload(self._api.forms, name, action, **details)


def _archive(files):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return packed.getvalue()
