"""How GitHub writes pull requests, workflow runs and artifacts as JSON."""

import difflib

from tests.fakes.github.forms import Forms, person
from tests.fakes.github.state import blob_sha

PULL_URLS = {
    "comments": "/issues/{n}/comments",
    "commits": "/pulls/{n}/commits",
    "issue": "/issues/{n}",
    "review_comments": "/pulls/{n}/comments",
}
RUN_URLS = ["jobs", "logs", "cancel", "rerun", "artifacts"]
WORKFLOW = 77


class Changes(Forms):
    # --- pull requests

    def pull(self, pull):
        """As it stands alone."""
        changes = [self.file_of_pull(*change) for change in self.state.changed_files(pull)]
        return {
            **self.simple_pull(pull),
            "merged": False,
            "mergeable": True,
            "rebaseable": True,
            "mergeable_state": "clean",
            "merged_by": None,
            "comments": len(self.state.comments_of(pull.number)),
            "review_comments": 0,
            "maintainer_can_modify": self._is_from_fork(pull),
            "commits": 1,
            "additions": sum(change["additions"] for change in changes),
            "deletions": sum(change["deletions"] for change in changes),
            "changed_files": len(changes),
        }

    def simple_pull(self, pull):
        """As it stands in a list."""
        repository = self._only_repository()
        api = f"{self.api}/repos/{repository}"
        page = f"{self.html}/{repository}/pull/{pull.number}"
        urls = {f"{k}_url": api + path.format(n=pull.number) for k, path in PULL_URLS.items()}
        urls["review_comment_url"] = f"{api}/pulls/comments{{/number}}"
        urls["statuses_url"] = f"{api}/statuses/{pull.head_sha}"
        return {
            **urls,
            "id": 100000 + pull.number,
            "node_id": f"PR_{pull.number}",
            "url": f"{api}/pulls/{pull.number}",
            "html_url": page,
            "diff_url": f"{page}.diff",
            "patch_url": f"{page}.patch",
            "number": pull.number,
            "state": pull.state,
            "locked": False,
            "title": pull.title,
            "user": self.user(pull.author),
            "body": None,
            "created_at": pull.created_at,
            "updated_at": pull.created_at,
            "closed_at": None if pull.state == "open" else pull.created_at,
            "merged_at": None,
            "merge_commit_sha": "e" * 40,
            **dict.fromkeys(("assignee", "milestone", "active_lock_reason", "auto_merge")),
            **{k: [] for k in ("assignees", "requested_reviewers", "requested_teams", "labels")},
            "draft": pull.draft,
            "head": self._head(pull),
            "base": self._base(pull),
            "_links": self._links(urls, f"{api}/pulls/{pull.number}", page),
            "author_association": "CONTRIBUTOR",
        }

    def _links(self, urls, address, page):
        words = {"comments", "commits", "issue", "review_comment", "review_comments", "statuses"}
        links = {word: {"href": urls[f"{word}_url"]} for word in words}
        return {**links, "self": {"href": address}, "html": {"href": page}}

    def _head(self, pull):
        """The repository is null when the fork is gone."""
        repository = self.state.repositories.get(pull.head_repository)
        owner = repository.owner if repository else pull.author
        return self._end(owner, pull.head_branch, pull.head_sha, repository)

    def _base(self, pull):
        repository = self.state.repositories[self._only_repository()]
        return self._end(repository.owner, pull.base_branch, pull.base_sha, repository)

    def _end(self, owner, branch, sha, repository):
        return {
            "label": f"{owner}:{branch}",
            "ref": branch,
            "sha": sha,
            "user": self.user(owner),
            "repo": self.repository(repository) if repository else None,
        }

    def _is_from_fork(self, pull):
        return pull.head_repository != self._only_repository()

    def issue(self, pull):
        """A pull request is an issue, too."""
        api = f"{self.api}/repos/{self._only_repository()}"
        address = f"{api}/issues/{pull.number}"
        page = f"{self.html}/{self._only_repository()}/pull/{pull.number}"
        return {
            "id": 200000 + pull.number,
            "node_id": f"PR_{pull.number}",
            "url": address,
            "repository_url": api,
            "labels_url": f"{address}/labels{{/name}}",
            "comments_url": f"{address}/comments",
            "events_url": f"{address}/events",
            "html_url": page,
            "number": pull.number,
            "state": pull.state,
            "title": pull.title,
            "body": None,
            "user": self.user(pull.author),
            "labels": [],
            "assignee": None,
            "assignees": [],
            "milestone": None,
            "locked": False,
            "active_lock_reason": None,
            "draft": pull.draft,
            "comments": len(self.state.comments_of(pull.number)),
            "pull_request": {
                "url": f"{api}/pulls/{pull.number}",
                "html_url": page,
                "diff_url": f"{page}.diff",
                "patch_url": f"{page}.patch",
            },
            "closed_at": None if pull.state == "open" else pull.created_at,
            "created_at": pull.created_at,
            "updated_at": pull.created_at,
            "author_association": "CONTRIBUTOR",
            "reactions": self.reactions(address),
        }

    def file_of_pull(self, path, before, after):
        """One file of a pull request, with its patch where both sides are text."""
        status = "added" if before is None else "removed" if after is None else "modified"
        sha = blob_sha(before if after is None else after)
        page = f"{self.html}/{self._only_repository()}"
        patch = _patch(before or b"", after or b"")
        plus = sum(line.startswith("+") for line in patch)
        minus = sum(line.startswith("-") for line in patch)
        return {
            "sha": sha,
            "filename": path,
            "status": status,
            "additions": plus,
            "deletions": minus,
            "changes": plus + minus,
            "blob_url": f"{page}/blob/{sha}/{path}",
            "raw_url": f"{page}/raw/{sha}/{path}",
            "contents_url": f"{self.api}/repos/{self._only_repository()}/contents/{path}",
            "patch": "\n".join(patch),
        }

    # --- runs and artifacts

    def run(self, run):
        base = self.state.repositories[self._only_repository()]
        head = self.state.repositories.get(run.head_repository)
        api = f"{self.api}/repos/{base.full_name}"
        address = f"{api}/actions/runs/{run.id}"
        return {
            "id": run.id,
            "name": run.name,
            "node_id": f"WFR_{run.id}",
            "check_suite_id": 5,
            "check_suite_node_id": "CS_5",
            "head_branch": run.head_branch,
            "head_sha": run.head_sha,
            "path": run.path,
            "display_title": "A change",
            "run_number": run.id,
            "run_attempt": run.attempt,
            "event": run.event,
            "status": run.status,
            "conclusion": run.conclusion,
            "workflow_id": WORKFLOW,
            "url": address,
            "html_url": f"{self.html}/{base.full_name}/actions/runs/{run.id}",
            "pull_requests": self._pulls_of(run),
            "created_at": run.created_at,
            "updated_at": run.created_at,
            "run_started_at": run.created_at,
            "actor": self.user(base.owner),
            "triggering_actor": self.user(base.owner),
            **{f"{word}_url": f"{address}/{word}" for word in RUN_URLS},
            "check_suite_url": f"{api}/check-suites/5",
            "workflow_url": f"{api}/actions/workflows/{WORKFLOW}",
            "previous_attempt_url": None,
            "referenced_workflows": [],
            "head_commit": self._head_commit(run),
            "repository": self.minimal_repository(base),
            "head_repository": self.minimal_repository(head) if head else None,
        }

    def _pulls_of(self, run):
        """GitHub leaves this list empty when the run is of a fork."""
        head = (self._only_repository(), run.head_branch)
        found = [
            pull
            for pull in self.state.pulls.values()
            if (pull.head_repository, pull.head_branch) == head == (run.head_repository, head[1])
        ]
        return [self.minimal_pull(pull) for pull in found]

    def minimal_pull(self, pull):
        repository = self.state.repositories[self._only_repository()]
        api = f"{self.api}/repos/{repository.full_name}"
        end = {"id": repository.id, "url": api, "name": repository.name}
        return {
            "id": 100000 + pull.number,
            "number": pull.number,
            "url": f"{api}/pulls/{pull.number}",
            "head": {"ref": pull.head_branch, "sha": pull.head_sha, "repo": end},
            "base": {"ref": pull.base_branch, "sha": pull.base_sha, "repo": end},
        }

    def _head_commit(self, run):
        commit = self.state.commits[run.head_sha]
        who = {key: value for key, value in person(commit).items() if key != "date"}
        return {
            "id": commit.sha,
            "tree_id": commit.sha,
            "message": commit.message,
            "timestamp": commit.date,
            "author": who,
            "committer": who,
        }

    def _digest(self, artifact):
        """GHES has none, as far as its description goes."""
        return {"digest": artifact.digest} if self.digests else {}

    def artifact(self, artifact):
        run = self.state.runs[artifact.run_id]
        base = self.state.repositories[self._only_repository()]
        head = self.state.repositories.get(run.head_repository)
        address = f"{self.api}/repos/{base.full_name}/actions/artifacts/{artifact.id}"
        return {
            "id": artifact.id,
            "node_id": f"ART_{artifact.id}",
            "name": artifact.name,
            "size_in_bytes": artifact.size,
            "url": address,
            "archive_download_url": f"{address}/zip",
            "expired": artifact.expired,
            **self._digest(artifact),
            "created_at": artifact.created_at,
            "updated_at": artifact.created_at,
            "expires_at": "2026-04-02T03:04:05Z",
            "workflow_run": {
                "id": run.id,
                "repository_id": base.id,
                "head_repository_id": head.id if head else 0,
                "head_branch": run.head_branch,
                "head_sha": run.head_sha,
            },
        }


def _patch(before, after):
    """As GitHub has it: hunks only, without the names of the files."""
    old, new = (text.decode(errors="replace").splitlines() for text in (before, after))
    return list(difflib.unified_diff(old, new, lineterm=""))[2:]
