"""A repository: its files at a commit, who may do what in it, and who is asking."""

from tests.fakes.github.call import Answer, RefusedError

# What the older of the two fields calls the newer levels.
LEGACY = {"triage": "read", "maintain": "write"}


def get(call):
    return Answer(200, call.forms.full_repository(call.repository))


def compare(call):
    """Commits of a fork are found as well: both share what git keeps."""
    base, head = (_commit(call, ref) for ref in call.parts["basehead"].split("..."))
    before, after = call.state.history(base.sha), call.state.history(head.sha)
    common = [sha for sha in before if sha in after]
    if not common:
        raise RefusedError(404, f"No common ancestor between {base.sha} and {head.sha}.")
    ahead = [sha for sha in after if sha not in before]
    behind = [sha for sha in before if sha not in after]
    page, headers = call.page(ahead[::-1])
    address = f"{call.forms.api}/repos/{call.repository.full_name}/compare/{base.sha}...{head.sha}"
    body = {
        **dict.fromkeys(("url", "html_url", "permalink_url", "diff_url", "patch_url"), address),
        "base_commit": _whole(call, base),
        "merge_base_commit": _whole(call, call.state.commits[common[0]]),
        "status": _standing(ahead, behind),
        "ahead_by": len(ahead),
        "behind_by": len(behind),
        "total_commits": len(ahead),
        "commits": [_whole(call, call.state.commits[sha]) for sha in page],
        "files": [],
    }
    return Answer(200, body, headers)


def contents(call):
    ref = call.query.get("ref", call.repository.default_branch)
    commit = _commit(call, ref)
    path = call.parts["path"].strip("/")
    if path in commit.files:
        return Answer(200, call.forms.file(call.repository, ref, path, commit.files[path]))
    folder = [p for p in sorted(commit.files) if p.rpartition("/")[0] == path]
    if not folder:
        raise RefusedError(404, "Not Found")
    entries = [call.forms.entry(call.repository, ref, p, commit.files[p]) for p in folder]
    return Answer(200, entries)


def git_blob(call):
    content = call.state.blob(call.parts["file_sha"])
    if content is None:
        raise RefusedError(404, "Not Found")
    return Answer(200, call.forms.blob(call.repository, content))


def git_tree(call):
    commit = _commit(call, call.parts["tree_sha"])
    items = call.forms.tree_items(call.repository, commit, deep="recursive" in call.query)
    body = {
        "sha": commit.sha,
        "url": f"{call.forms.api}/repos/{call.repository.full_name}/git/trees/{commit.sha}",
        "tree": items[: call.state.most_tree_items],
        "truncated": len(items) > call.state.most_tree_items,
    }
    return Answer(200, body)


def permission(call):
    login = call.parts["username"]
    level = call.state.levels.get(login, "none" if call.repository.private else "read")
    user = {
        **call.forms.user(login),
        "role_name": level,
        "permissions": {
            "pull": level != "none",
            "triage": level not in {"none", "read"},
            "push": level in {"write", "maintain", "admin"},
            "maintain": level in {"maintain", "admin"},
            "admin": level == "admin",
        },
    }
    legacy = LEGACY.get(level, level)
    return Answer(200, {"permission": legacy, "role_name": level, "user": user})


def _commit(call, ref):
    sha = call.state.resolve(call.repository, ref)
    if sha is None:
        raise RefusedError(404, f"No commit found for the ref {ref}")
    return call.state.commits[sha]


def _whole(call, commit):
    """Write a commit as it stands beside a branch, or in a list."""
    address = f"{call.forms.api}/repos/{call.repository.full_name}"
    written = call.forms.git_commit(call.repository, commit)
    return {
        **{key: written[key] for key in ("sha", "node_id", "html_url", "parents")},
        "url": f"{address}/commits/{commit.sha}",
        "comments_url": f"{address}/commits/{commit.sha}/comments",
        "commit": {
            **{k: written[k] for k in ("author", "committer", "message", "tree", "url")},
            "comment_count": 0,
            "verification": written["verification"],
        },
        "author": call.forms.user(commit.author),
        "committer": call.forms.user(commit.author),
    }


def _standing(ahead, behind):
    if ahead and behind:
        return "diverged"
    return "ahead" if ahead else "behind" if behind else "identical"
