"""How GitHub writes what it remembers as JSON: the keys that somebody reads, and no other."""

import base64

from tests.fakes.github.state import blob_sha, commit_sha, git_mode


class Forms:
    """Writes with the address of one server's pages; only some servers have digests."""

    def __init__(self, state, html="", *, digests=True):
        self.state, self.html, self.digests = state, html, digests

    def _page(self, path):
        return f"{self.html}/{self._base().full_name}/{path}"

    def _base(self):
        return next(iter(self.state.repositories.values()))

    # --- who and where

    def user(self, login):
        return {"login": login, "type": "Bot" if login.endswith("[bot]") else "User"}

    def repository(self, repository):
        return {
            "id": repository.id,
            "full_name": repository.full_name,
            "owner": self.user(repository.owner),
        }

    # --- comments and checks

    def comment(self, comment):
        return {
            "id": comment.id,
            "html_url": self._page(f"pull/{comment.number}#issuecomment-{comment.id}"),
            "body": comment.body,
            "user": self.user(comment.author),
            "created_at": comment.created_at,
            "updated_at": comment.updated_at,
        }

    def check_run(self, check):
        return {
            "id": check.id,
            "name": check.name,
            "external_id": check.external_id,
            "html_url": self._page(f"runs/{check.id}"),
            "status": check.status,
            "conclusion": check.conclusion,
        }

    # --- git

    def blob(self, content):
        # As GitHub sends it: in lines, which a client must bear.
        lines = base64.encodebytes(content).decode()
        return {"size": len(content), "content": lines, "encoding": "base64"}

    def tree_items(self, commit, *, deep):
        """All that a commit holds; without `deep`, only what is at its root."""
        folders = {
            path.rsplit("/", depth)[0]: None
            for path in commit.files
            for depth in range(1, path.count("/") + 1)
        }
        items = []
        for path in sorted({*commit.files, *folders}):
            if not deep and "/" in path:
                continue
            content = commit.files.get(path)
            mode, kind = ("040000", "tree") if content is None else git_mode(content)
            sha = commit_sha(content) if kind == "commit" else blob_sha(content or path.encode())
            items.append({"path": path, "mode": mode, "type": kind, "sha": sha})
        return items

    def entry(self, path, content):
        """A file without its content, which is a blob."""
        name = path.rpartition("/")[2]
        return {"name": name, "path": path, "sha": blob_sha(content), "type": "file"}

    # --- pull requests

    def pull(self, pull):
        return {
            "number": pull.number,
            "state": pull.state,
            "draft": pull.draft,
            "user": self.user(pull.author),
            # The repository is null when the fork is gone.
            "head": self._end(pull.head_branch, pull.head_sha, pull.head_repository),
            "base": self._end(pull.base_branch, pull.base_sha, self._base().full_name),
        }

    def _end(self, branch, sha, name):
        repository = self.state.repositories.get(name)
        repo = self.repository(repository) if repository else None
        return {"ref": branch, "sha": sha, "repo": repo}

    def issue(self, pull):
        """A pull request is an issue, too."""
        page = {"html_url": self._page(f"pull/{pull.number}")}
        return {"number": pull.number, "pull_request": page}

    def any_issue(self, issue):
        """An issue, or a pull request where issues are listed."""
        if hasattr(issue, "head_sha"):
            shown = {"title": "a pull request", "body": None, **self.issue(issue)}
            return {**shown, "state": issue.state, "user": self.user(issue.author)}
        return {
            "id": 10_000 + issue.number,
            "number": issue.number,
            "html_url": self._page(f"issues/{issue.number}"),
            "title": issue.title,
            "body": issue.body,
            "state": issue.state,
            "user": self.user(issue.author),
        }

    def commit(self, commit):
        """Nobody is known by an address that no account has."""
        known = "@" not in commit.author
        return {
            "sha": commit.sha,
            "author": self.user(commit.author) if known else None,
            "parents": [{"sha": parent} for parent in commit.parents],
        }

    def file_of_pull(self, path, before, after):
        status = "added" if before is None else "removed" if after is None else "modified"
        sha = blob_sha(before if after is None else after)
        return {"sha": sha, "filename": path, "status": status}

    # --- runs and artifacts

    def run(self, run):
        head = self.state.repositories.get(run.head_repository)
        return {
            "id": run.id,
            "head_branch": run.head_branch,
            "head_sha": run.head_sha,
            "path": run.path,
            "run_attempt": run.attempt,
            "event": run.event,
            "status": run.status,
            "conclusion": run.conclusion,
            "html_url": self._page(f"actions/runs/{run.id}"),
            "pull_requests": self._pulls_of(run),
            "repository": self.repository(self._base()),
            "head_repository": self.repository(head) if head else None,
        }

    def _pulls_of(self, run):
        """GitHub leaves this list empty when the run is of a fork."""
        head = (self._base().full_name, run.head_branch)
        return [
            {"number": pull.number}
            for pull in self.state.pulls.values()
            if (pull.head_repository, pull.head_branch) == head == (run.head_repository, head[1])
        ]

    def artifact(self, artifact):
        """GHES has no digest, as far as its description goes."""
        return {
            "id": artifact.id,
            "name": artifact.name,
            "size_in_bytes": artifact.size,
            "expired": artifact.expired,
            **({"digest": artifact.digest} if self.digests else {}),
            "workflow_run": {"id": artifact.run_id},
        }
