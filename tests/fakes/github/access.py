"""Who is asking, and whether GitHub would let them.

Stricter than GitHub in one way: the token of a job needs a permission to read a public
repository, too. A job that passes here passes in a private repository. A person only reads.
"""

from tests.fakes.github.call import RefusedError
from tests.fakes.github.state import BOT

READS, WRITES = "read", "write"
REPORTING = {
    "contents": READS,
    "pull_requests": WRITES,
    "checks": WRITES,
    "actions": READS,
}
# GitHub takes everything away from a job of a pull request from a fork, but reading.
OF_A_FORK = dict.fromkeys(REPORTING, READS)
# By the first part of an operation's name; the others belong to everybody.
PERMISSIONS = {
    "actions": ("actions",),
    "checks": ("checks",),
    "git": ("contents",),
    "issues": ("issues", "pull_requests"),
    "pulls": ("pull_requests",),
}
EXCEPTIONS = {
    "issues/check-user-can-be-assigned": ("issues",),
    "issues/create": ("issues",),
    "issues/list-for-repo": ("issues",),
    "issues/update": ("issues",),
    "repos/compare-commits-with-basehead": ("contents",),
    "repos/get-commit": ("contents",),
    "repos/list-pull-requests-associated-with-commit": ("pull_requests",),
    "repos/get-content": ("contents",),
}
NOT_ACCESSIBLE = "Resource not accessible by integration"


class Access:
    """Tokens and permissions of one server."""

    def __init__(self, state, home, job_token):
        self._state, self._home = state, home
        self._logins = {job_token: BOT}
        self.permissions = dict(REPORTING)

    def add(self, token, login):
        """Let whoever shows this token be this person."""
        self._logins[token] = login

    def login(self, token):
        """Return who shows this token; nobody without one."""
        if token is None:
            return None
        if token not in self._logins:
            raise RefusedError(401, "Bad credentials")
        return self._logins[token]

    def check(self, login, operation, repository, method):
        """Refuse what this person or job may not do; what is private is not even there."""
        writes = method not in {"GET", "HEAD"}
        if repository and repository.private and not self._sees(login, repository):
            raise RefusedError(404, "Not Found")
        if login is None:
            if writes:
                raise RefusedError(401, "Requires authentication")
        elif login == BOT:
            self._check_job(operation, repository, WRITES if writes else READS)
        elif writes:
            raise RefusedError(403, "Must have push access to repository")

    def allows_job(self, names, level):
        """Whether one of these permissions is at least this one."""
        found = {self.permissions.get(name) for name in names}
        return bool(found & ({WRITES} if level == WRITES else {READS, WRITES}))

    def _sees(self, login, repository):
        if login == BOT:
            return repository.full_name == self._home
        return self._state.levels.get(login, "none") != "none"

    def _check_job(self, operation, repository, level):
        default = PERMISSIONS.get(operation.partition("/")[0], ())
        names = EXCEPTIONS.get(operation, default)
        elsewhere = repository is not None and repository.full_name != self._home
        if names and not self.allows_job(names, level):
            raise RefusedError(403, NOT_ACCESSIBLE)
        if elsewhere and level == WRITES:
            raise RefusedError(403, NOT_ACCESSIBLE)
