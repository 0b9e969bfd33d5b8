"""How GitHub writes what it remembers: users, repositories, comments, checks, commits as JSON.

Pull requests and runs are in `forms_of_changes`.
"""

import base64
import re

from tests.fakes.github.state import BOT, blob_sha, commit_sha, git_mode

# Which address follows a repository's own, by the word before `_url`.
REPOSITORY_URLS = {
    "archive": "/{archive_format}{/ref}",
    "assignees": "/assignees{/user}",
    "blobs": "/git/blobs{/sha}",
    "branches": "/branches{/branch}",
    "collaborators": "/collaborators{/collaborator}",
    "comments": "/comments{/number}",
    "commits": "/commits{/sha}",
    "compare": "/compare/{base}...{head}",
    "contents": "/contents/{+path}",
    "git_commits": "/git/commits{/sha}",
    "git_refs": "/git/refs{/sha}",
    "git_tags": "/git/tags{/sha}",
    "issue_comment": "/issues/comments{/number}",
    "issue_events": "/issues/events{/number}",
    "issues": "/issues{/number}",
    "keys": "/keys{/key_id}",
    "labels": "/labels{/name}",
    "milestones": "/milestones{/number}",
    "notifications": "/notifications{?since,all,participating}",
    "pulls": "/pulls{/number}",
    "releases": "/releases{/id}",
    "statuses": "/statuses/{sha}",
    "trees": "/git/trees{/sha}",
    **{
        word: f"/{word}"
        for word in [
            "contributors",
            "deployments",
            "downloads",
            "events",
            "forks",
            "hooks",
            "languages",
            "merges",
            "stargazers",
            "subscribers",
            "subscription",
            "tags",
            "teams",
        ]
    },
}
USER_URLS = [
    "followers",
    "following",
    "gists",
    "starred",
    "subscriptions",
    "organizations",
    "repos",
    "events",
    "received_events",
]
REACTIONS = ("+1", "-1", "laugh", "confused", "heart", "hooray", "eyes", "rocket")
APP = 15368
# GitHub does not send the content of a larger file with its description.
INLINE = 1024 * 1024


class Forms:
    """Writes with the addresses of one server: clients follow what stands in an answer."""

    def __init__(self, state, api, html, *, digests=True):
        self.state, self.api, self.html, self.digests = state, api, html, digests

    # --- who and where

    def user(self, login):
        """A bot's address has its brackets quoted: an address may not hold them."""
        address = f"{self.api}/users/{login.replace('[', '%5B').replace(']', '%5D')}"
        bot = login.endswith("[bot]")
        return {
            "login": login,
            "id": 41898282 if login == BOT else 1 + sum(login.encode()),
            "node_id": f"U_{login}",
            "avatar_url": f"{self.html}/avatars/{sum(login.encode())}",
            "gravatar_id": "",
            "url": address,
            "html_url": f"{self.html}/{'apps/' if bot else ''}{login.removesuffix('[bot]')}",
            "type": "Bot" if bot else "User",
            "site_admin": False,
            **{f"{word}_url": f"{address}/{word}" for word in USER_URLS},
        }

    def minimal_repository(self, repository):
        """As it stands inside of a run."""
        address = f"{self.api}/repos/{repository.full_name}"
        return {
            "id": repository.id,
            "node_id": f"R_{repository.id}",
            "name": repository.name,
            "full_name": repository.full_name,
            "private": repository.private,
            "owner": self.user(repository.owner),
            "html_url": f"{self.html}/{repository.full_name}",
            "description": None,
            "fork": repository.parent is not None,
            "url": address,
            **{f"{word}_url": address + rest for word, rest in REPOSITORY_URLS.items()},
        }

    def repository(self, repository):
        """As it stands inside of a pull request and of an event."""
        page = f"{self.html}/{repository.full_name}"
        counts = ("forks", "open_issues", "watchers")
        return {
            **self.minimal_repository(repository),
            "clone_url": f"{page}.git",
            "git_url": re.sub(r"^\w+", "git", page) + ".git",
            "ssh_url": f"git@github.com:{repository.full_name}.git",
            "svn_url": page,
            "default_branch": repository.default_branch,
            "visibility": "private" if repository.private else "public",
            **dict.fromkeys((*counts, *(f"{c}_count" for c in counts)), 0),
            "stargazers_count": 0,
            "size": 1,
            **{
                f"has_{w}": False for w in ["projects", "wiki", "pages", "downloads", "discussions"]
            },
            "has_issues": True,
            **dict.fromkeys(("homepage", "language", "mirror_url", "license")),
            "archived": False,
            "disabled": False,
            "allow_forking": True,
            "is_template": False,
            "topics": [],
            "web_commit_signoff_required": False,
            **{f"{w}_at": "2026-01-01T00:00:00Z" for w in ("created", "updated", "pushed")},
        }

    def full_repository(self, repository):
        """As it stands alone."""
        return {**self.repository(repository), "network_count": 0, "subscribers_count": 0}

    # --- comments

    def comment(self, comment):
        repository = self._only_repository()
        address = f"{self.api}/repos/{repository}/issues"
        page = f"{self.html}/{repository}/pull/{comment.number}#issuecomment-{comment.id}"
        return {
            "id": comment.id,
            "node_id": f"IC_{comment.id}",
            "url": f"{address}/comments/{comment.id}",
            "html_url": page,
            "body": comment.body,
            "user": self.user(comment.author),
            "created_at": comment.created_at,
            "updated_at": comment.updated_at,
            "issue_url": f"{address}/{comment.number}",
            "author_association": "NONE",
            "performed_via_github_app": None,
            "reactions": self.reactions(f"{address}/comments/{comment.id}"),
        }

    def reactions(self, address):
        """How often each reaction was given: nobody reacts here."""
        return {"url": f"{address}/reactions", "total_count": 0, **dict.fromkeys(REACTIONS, 0)}

    def _only_repository(self):
        return next(iter(self.state.repositories))

    # --- checks

    def check_run(self, check):
        address = f"{self.api}/repos/{self._only_repository()}/check-runs/{check.id}"
        return {
            "id": check.id,
            "node_id": f"CR_{check.id}",
            "head_sha": check.head_sha,
            "name": check.name,
            "external_id": check.external_id,
            "url": address,
            "html_url": f"{self.html}/{self._only_repository()}/runs/{check.id}",
            "details_url": check.details_url,
            "status": check.status,
            "conclusion": check.conclusion,
            "started_at": check.started_at,
            "completed_at": check.completed_at,
            "output": {
                **check.output,
                "annotations_count": len(check.annotations),
                "annotations_url": f"{address}/annotations",
            },
            "check_suite": {"id": APP + 1},
            "app": self._app(),
            "pull_requests": [],
        }

    def _app(self):
        return {
            "id": APP,
            "slug": "github-actions",
            "node_id": "A_1",
            "owner": self.user("github"),
            "name": "GitHub Actions",
            "description": "",
            "external_url": f"{self.html}/features/actions",
            "html_url": f"{self.html}/apps/github-actions",
            "created_at": "2018-07-30T09:30:17Z",
            "updated_at": "2024-04-10T20:33:16Z",
            "permissions": {"checks": "write"},
            "events": [],
        }

    # --- git

    def blob(self, repository, content):
        sha = blob_sha(content)
        return {
            "sha": sha,
            "node_id": f"B_{sha}",
            "url": f"{self.api}/repos/{repository.full_name}/git/blobs/{sha}",
            "size": len(content),
            "content": _base64(content),
            "encoding": "base64",
        }

    def tree_items(self, repository, commit, *, deep):
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
            item = {"path": path, "mode": mode, "type": kind, "sha": sha}
            if kind != "commit":
                where = f"{self.api}/repos/{repository.full_name}/git/{kind}s/{sha}"
                item["url"] = where
            items.append(item | ({"size": len(content)} if kind == "blob" else {}))
        return items

    def git_commit(self, repository, commit):
        address = f"{self.api}/repos/{repository.full_name}/git"
        page = f"{self.html}/{repository.full_name}/commit"
        return {
            "sha": commit.sha,
            "node_id": f"C_{commit.sha}",
            "url": f"{address}/commits/{commit.sha}",
            "html_url": f"{page}/{commit.sha}",
            "author": person(commit),
            "committer": person(commit),
            "message": commit.message,
            "tree": {"sha": commit.sha, "url": f"{address}/trees/{commit.sha}"},
            "parents": [
                {"sha": sha, "url": f"{address}/commits/{sha}", "html_url": f"{page}/{sha}"}
                for sha in commit.parents
            ],
            "verification": UNSIGNED,
        }

    def file(self, repository, ref, path, content):
        """A file with its content, unless it is a large one."""
        small = len(content) <= INLINE
        return {
            **self.entry(repository, ref, path, content),
            "content": _base64(content) if small else "",
            "encoding": "base64" if small else "none",
        }

    def entry(self, repository, ref, path, content):
        """A file as it stands in the listing of its folder."""
        address = f"{self.api}/repos/{repository.full_name}"
        url = f"{address}/contents/{path}?ref={ref}"
        git_url = f"{address}/git/blobs/{blob_sha(content)}"
        page = f"{self.html}/{repository.full_name}/blob/{ref}/{path}"
        return {
            "name": path.rpartition("/")[2],
            "path": path,
            "sha": blob_sha(content),
            "size": len(content),
            "url": url,
            "html_url": page,
            "git_url": git_url,
            "download_url": f"{self.html}/{repository.full_name}/raw/{ref}/{path}",
            "type": "file",
            "_links": {"self": url, "git": git_url, "html": page},
        }


UNSIGNED = {
    "verified": False,
    "reason": "unsigned",
    "signature": None,
    "payload": None,
    "verified_at": None,
}


def person(commit):
    """Return who wrote a commit, and when."""
    email = f"{commit.author}@users.noreply.github.com"
    return {"name": commit.author, "email": email, "date": commit.date}


def _base64(content):
    """As GitHub sends it: in lines, which a client must bear."""
    return base64.encodebytes(content).decode()
