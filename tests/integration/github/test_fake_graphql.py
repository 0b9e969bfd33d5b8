"""The fake GitHub by GraphQL: pages of comments, and commits that nobody overtakes."""

import base64

import pytest

from tests.fakes.github.fixtures import on_github_and_ghes
from tests.integration.github.asking import FORK_SHA, SHA, graphql

COMMENTS = """
query($first: Int!, $after: String) {
  repository(owner: "octo", name: "model") { pullRequest(number: 7) {
    comments(first: $first, after: $after) {
      nodes { databaseId viewerDidAuthor isMinimized body }
      pageInfo { endCursor hasNextPage }
    }
  } }
}
"""
COMMIT = """
mutation($input: CreateCommitOnBranchInput!) {
  createCommitOnBranch(input: $input) { commit { oid } }
}
"""


def page_of_comments(github, after=None):
    answer = graphql(github, COMMENTS, first=100, after=after)
    return answer["data"]["repository"]["pullRequest"]["comments"]


def commit(github, *, deleted=(), repository="octo/model"):
    """Commit a file to `feature`, which is expected to be where its pull request has begun."""
    asked = {
        "branch": {"repositoryNameWithOwner": repository, "branchName": "feature"},
        "expectedHeadOid": SHA,
        "message": {"headline": "perf: accept", "body": "because"},
        "fileChanges": {
            "additions": [{"path": "a.json", "contents": base64.b64encode(b"{}").decode()}],
            "deletions": [{"path": path} for path in deleted],
        },
    }
    return graphql(github, COMMIT, input=asked)


@on_github_and_ghes
def test_graphql_says_which_comments_are_ours_page_by_page(github):
    github.add_pull(7)
    github.forge_comments(7, "marker", count=120)
    ours = github.add_comment(7, "ours")
    first = page_of_comments(github)
    second = page_of_comments(github, first["pageInfo"]["endCursor"])

    assert (len(first["nodes"]), first["pageInfo"]["hasNextPage"]) == (100, True)
    assert (len(second["nodes"]), second["pageInfo"]["hasNextPage"]) == (21, False)
    mine = [n for n in first["nodes"] + second["nodes"] if n["viewerDidAuthor"]]
    assert [node["databaseId"] for node in mine] == [ours.id]
    assert graphql(github, COMMENTS, first=101)["errors"][0]["type"] == "EXCESSIVE_PAGINATION"


@on_github_and_ghes
def test_a_commit_by_graphql_moves_the_branch_and_its_pull_request(github):
    github.permissions |= {"contents": "write"}
    github.add_pull(7, head_sha=SHA, files={"old.json": "1"})
    answer = commit(github, deleted=["old.json"])

    sha = answer["data"]["createCommitOnBranch"]["commit"]["oid"]
    assert github.head("feature") == sha == github.state.pulls[7].head_sha
    assert github.commit("feature").files == {"a.json": b"{}"}
    assert github.commit("feature").message == "perf: accept\n\nbecause"


@pytest.mark.parametrize(
    ("level", "head", "more", "kind"),
    [
        ("write", FORK_SHA, {}, "STALE_DATA"),
        ("write", SHA, {"repository": "mallory/model"}, "FORBIDDEN"),
        ("read", SHA, {}, "FORBIDDEN"),
        ("write", SHA, {"deleted": ["gone.json"]}, "UNPROCESSABLE"),
    ],
)
def test_a_commit_by_graphql_is_refused(github, level, head, more, kind):
    github.permissions |= {"contents": level}
    github.add_pull(7, head_sha=head, fork="repository" in more)

    assert commit(github, **more)["errors"][0]["type"] == kind
    assert github.head("feature", fork="repository" in more) == head
