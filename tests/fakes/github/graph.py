"""GraphQL, as far as the cut schema goes: any document that it allows is carried out.

A document that does not fit the schema is a problem of ours and is said to be one; what GitHub
itself refuses is an error in the answer, with status 200 and a type.
"""

import base64
import functools
from pathlib import Path
from typing import Any

import graphql

from tests.fakes.github.access import NOT_ACCESSIBLE, READS, WRITES
from tests.fakes.github.state import BOT

SCHEMA = Path(__file__).parent / "description/schema.graphql"
LARGEST_PAGE = 100
STALE = 'Expected branch to point to "{}" but it did not.  Pull and try again.'


class RefusedError(Exception):
    """An error as GitHub words it: with a type that a program can read."""

    def __init__(self, kind, message):
        super().__init__(message)
        self.kind = kind


@functools.cache
def schema():
    # The published schema repeats a field here and there, which the strict check refuses.
    return graphql.build_schema(
        SCHEMA.read_text(encoding="utf-8"), assume_valid=True, assume_valid_sdl=True
    )


def answer(document, variables, root):
    """Return the body of the answer, and the problems that the document has."""
    try:
        parsed = graphql.parse(document)
    except graphql.GraphQLError as error:
        return {"errors": [error.formatted]}, [f"graphql: {error.message}"]
    wrong = graphql.validate(schema(), parsed)
    if wrong:
        problems = [f"graphql: {error.message}" for error in wrong]
        return {"errors": [error.formatted for error in wrong]}, problems
    result = graphql.execute_sync(schema(), parsed, root, variable_values=variables)
    body: dict[str, Any] = {"data": result.data}
    if result.errors:
        body["errors"] = [_written(error) for error in result.errors]
    return body, [f"graphql: {e.message}" for e in result.errors or () if _is_ours(e)]


def _is_ours(error):
    return not isinstance(error.original_error, RefusedError)


def _written(error):
    if _is_ours(error):
        return error.formatted
    return {"type": error.original_error.kind, **error.formatted}


class Root:
    """What a document begins with: the queries and the mutations."""

    def __init__(self, state, forms, access, login):
        self._state, self._forms, self._access, self._login = state, forms, access, login

    # --- queries

    def repository(self, _info, owner, name, **_):
        found = self._state.repositories.get(f"{owner}/{name}")
        level = self._state.levels.get(self._login, "none")
        if found is None or (found.private and level == "none"):
            message = f"Could not resolve to a Repository with the name '{owner}/{name}'."
            raise RefusedError("NOT_FOUND", message)
        return {"pullRequest": self._pull}

    def _pull(self, _info, number):
        self._need(("pull_requests", "issues"), READS)
        if number not in self._state.pulls:
            message = f"Could not resolve to a PullRequest with the number of {number}."
            raise RefusedError("NOT_FOUND", message)
        return {"comments": functools.partial(self._comments, number)}

    def _comments(self, number, _info, **page):
        shown, info = _page(self._state.comments_of(number), **page)
        return {"nodes": [self._comment(comment) for comment in shown], "pageInfo": info}

    def _comment(self, comment):
        return {
            "databaseId": comment.id,
            "body": comment.body,
            "isMinimized": comment.minimized,
            "url": self._forms.comment(comment)["html_url"],
            "viewerDidAuthor": comment.author == self._login,
        }

    def viewer(self, _info):
        return {"login": self._login}

    # --- mutations

    def createCommitOnBranch(self, _info, input):  # noqa: A002, N802 - GitHub's names
        repository, branch = self._branch(input["branch"])
        self._need(("contents",), WRITES, repository)
        expected = input["expectedHeadOid"]
        if repository.branches.get(branch) != expected:
            raise RefusedError("STALE_DATA", STALE.format(expected))
        message = "\n\n".join(filter(None, map(input["message"].get, ("headline", "body"))))
        # What our commits remove is nothing.
        additions = input["fileChanges"]["additions"]
        files = {added["path"]: base64.b64decode(added["contents"]) for added in additions}
        sha = self._state.write_commit(files, (expected,), message=message, author=self._login)
        self._state.move_branch(repository, branch, sha)
        return {"commit": {"oid": sha}}

    def _branch(self, named):
        repository = self._state.repositories.get(named.get("repositoryNameWithOwner"))
        branch = named.get("branchName", "").removeprefix("refs/heads/")
        if repository is None or branch not in repository.branches:
            raise RefusedError("NOT_FOUND", f"Could not resolve to a branch: {named}")
        return repository, branch

    def _need(self, names, level, repository=None):
        """A job needs a permission; a person only reads."""
        here = repository is None or repository.parent is None
        is_allowed = here and self._access.allows_job(names, level)
        if not (is_allowed if self._login == BOT else level == READS):
            raise RefusedError("FORBIDDEN", NOT_ACCESSIBLE)


def _page(things, *, first, after=None):
    """An argument that the schema has and this has not is a mistake that is noted."""
    if not 0 <= first <= LARGEST_PAGE:
        raise RefusedError("EXCESSIVE_PAGINATION", "Requesting too many records: at most 100.")
    start = 0 if after is None else int(base64.b64decode(after)) + 1
    end = min(len(things), start + first)
    cursor = base64.b64encode(str(end - 1).encode()).decode() if end > start else None
    return things[start:end], {"hasNextPage": end < len(things), "endCursor": cursor}
