"""Every operation that the fake knows: who does it, and which permission it needs."""

from tests.fakes.github.operations import changes, checks, comments, issues, repositories

# By the name that GitHub's description has for it.
OPERATIONS = {
    "actions/create-workflow-dispatch": changes.dispatch,
    "actions/download-artifact": changes.download,
    "actions/get-workflow-run": changes.get_run,
    "actions/list-workflow-run-artifacts": changes.artifacts,
    "actions/list-workflow-runs-for-repo": changes.runs,
    "actions/re-run-workflow": changes.repeat,
    "checks/create": checks.create,
    "checks/list-for-ref": checks.listed,
    "checks/update": checks.update,
    "git/get-blob": repositories.git_blob,
    "git/get-tree": repositories.git_tree,
    "issues/check-user-can-be-assigned": issues.check_assignee,
    "issues/create": issues.create,
    "issues/create-comment": comments.create,
    "issues/delete-comment": comments.delete,
    "issues/get-comment": comments.get,
    "issues/list-comments": comments.listed,
    "issues/list-for-repo": issues.listed,
    "issues/update": issues.update,
    "issues/update-comment": comments.update,
    "pulls/get": changes.get_pull,
    "pulls/list": changes.pulls,
    "pulls/list-files": changes.pull_files,
    "repos/compare-commits-with-basehead": repositories.compare,
    "repos/get-collaborator-permission-level": repositories.permission,
    "repos/get-commit": repositories.commit,
    "repos/get-content": repositories.contents,
    "repos/list-pull-requests-associated-with-commit": changes.pulls_of_commit,
}
