"""The fake GitHub by GraphQL: pages of comments, and commits that nobody overtakes."""

import base64

import pytest

from tests.fakes.github.fixtures import on_github_and_ghes
from tests.integration.github.asking import MARKER, SHA, graphql, repository

COMMENTS = """
query($owner: String!, $name: String!, $number: Int!, $after: String) {
  viewer { login }
  repository(owner: $owner, name: $name) { pullRequest(number: $number) {
    comments(first: 100, after: $after) {
      nodes { databaseId viewerDidAuthor isMinimized body author { login } }
      pageInfo { endCursor hasNextPage }
    }
  } }
}
"""
COMMIT = """
mutation($input: CreateCommitOnBranchInput!) {
  createCommitOnBranch(input: $input) { commit { oid url } }
}
"""


def page_of_comments(github, after=None):
    owner, name = github.repository.split("/")
    answer = graphql(github, COMMENTS, owner=owner, name=name, number=7, after=after)
    return answer["data"]["repository"]["pullRequest"]["comments"]


def commit(expected, files, deleted=(), branch="feature", repository="octo/model"):
    """Return the input of a commit by GraphQL."""
    encoded = {path: base64.b64encode(content.encode()).decode() for path, content in files.items()}
    return {
        "branch": {"repositoryNameWithOwner": repository, "branchName": branch},
        "expectedHeadOid": expected,
        "message": {"headline": "perf: accept", "body": "because"},
        "fileChanges": {
            "additions": [{"path": path, "contents": text} for path, text in encoded.items()],
            "deletions": [{"path": path} for path in deleted],
        },
    }


@on_github_and_ghes
def test_graphql_says_which_comments_are_ours_page_by_page(github):
    github.add_pull(7)
    github.forge_comments(7, MARKER, count=120)
    ours = github.add_comment(7, f"{MARKER}\nours")

    first = page_of_comments(github)
    second = page_of_comments(github, first["pageInfo"]["endCursor"])

    assert (len(first["nodes"]), first["pageInfo"]["hasNextPage"]) == (100, True)
    assert (len(second["nodes"]), second["pageInfo"]["hasNextPage"]) == (21, False)
    mine = [n for n in first["nodes"] + second["nodes"] if n["viewerDidAuthor"]]
    assert [node["databaseId"] for node in mine] == [ours.id]
    # without the `[bot]` that REST has
    assert mine[0]["author"] == {"login": "github-actions"}


@on_github_and_ghes
def test_a_commit_by_graphql_moves_the_branch_and_its_pull_request(github):
    github.permissions |= {"contents": "write"}
    github.add_pull(7, head_sha=SHA, files={"old.json": "1"})

    wanted = commit(SHA, {"baselines/a.json": "{}"}, deleted=["old.json"])
    answer = graphql(github, COMMIT, input=wanted)

    sha = answer["data"]["createCommitOnBranch"]["commit"]["oid"]
    assert github.head("feature") == sha == repository(github).get_pull(7).head.sha
    assert github.commit("feature").files == {"baselines/a.json": b"{}"}
    assert github.commit("feature").message == "perf: accept\n\nbecause"


def test_a_commit_by_graphql_on_a_branch_that_has_moved_is_refused(github):
    github.permissions |= {"contents": "write"}
    github.add_pull(7, head_sha=SHA)
    moved = github.push("feature", {"a": "b"})

    answer = graphql(github, COMMIT, input=commit(SHA, {"c": "d"}))

    assert answer["errors"][0]["type"] == "STALE_DATA"
    assert github.head("feature") == moved


def test_a_commit_by_graphql_to_a_fork_is_refused(github):
    github.permissions |= {"contents": "write"}
    github.add_pull(7, head_sha=SHA, fork=True)

    answer = graphql(github, COMMIT, input=commit(SHA, {"c": "d"}, repository=github.fork))

    assert answer["errors"][0]["type"] == "FORBIDDEN"


def test_a_commit_by_graphql_needs_a_permission_that_a_report_does_not(github):
    github.add_pull(7, head_sha=SHA)

    answer = graphql(github, COMMIT, input=commit(SHA, {"c": "d"}))

    assert answer["errors"][0]["type"] == "FORBIDDEN"
    assert github.head("feature") == SHA


def test_a_commit_by_graphql_cannot_delete_what_is_not_there(github):
    github.permissions |= {"contents": "write"}
    github.add_pull(7, head_sha=SHA)

    answer = graphql(github, COMMIT, input=commit(SHA, {}, deleted=["gone.json"]))

    assert answer["errors"][0]["type"] == "UNPROCESSABLE"


@pytest.mark.parametrize(
    ("page", "kind"),
    [
        ("orderBy: {field: UPDATED_AT, direction: ASC}", "MISSING_PAGINATION_BOUNDARIES"),
        ("first: 101", "EXCESSIVE_PAGINATION"),
    ],
)
def test_graphql_wants_a_page_of_a_hundred_at_most(github, page, kind):
    github.add_pull(7)
    pull = f"pullRequest(number: 7) {{ comments({page}) {{ totalCount }} }}"

    answer = graphql(github, f'{{ repository(owner: "octo", name: "model") {{ {pull} }} }}')

    assert answer["errors"][0]["type"] == kind


def test_graphql_hides_a_comment(github):
    github.add_pull(7)
    comment = github.add_comment(7, "x", author="alice")
    repository(github).get_issue(7).get_comment(comment.id).minimize()

    assert comment.minimized
