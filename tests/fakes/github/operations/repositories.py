"""A repository: its files at a commit, and who may do what in it."""

from tests.fakes.github.call import Answer, RefusedError

# What the older of the two fields calls the newer levels.
LEGACY = {"triage": "read", "maintain": "write"}


def compare(call):
    """Commits of a fork are found as well: both share what git keeps."""
    base, head = (_commit(call, ref) for ref in call.parts["basehead"].split("..."))
    before, after = ({*call.state.history(commit.sha)} for commit in (base, head))
    if not before & after:
        raise RefusedError(404, f"No common ancestor between {base.sha} and {head.sha}.")
    behind = "behind" if before - after else "identical"
    diverged = "diverged" if before - after else "ahead"
    return Answer(200, {"status": diverged if after - before else behind})


def contents(call):
    commit = _commit(call, call.query.get("ref", call.repository.default_branch))
    path = call.parts["path"].strip("/")
    if path in commit.files:
        return Answer(200, call.forms.entry(path, commit.files[path]))
    folder = [p for p in sorted(commit.files) if p.rpartition("/")[0] == path]
    if not folder:
        raise RefusedError(404, "Not Found")
    return Answer(200, [call.forms.entry(path, commit.files[path]) for path in folder])


def commit(call):
    sha = call.state.resolve(call.repository, call.parts["ref"])
    if sha is None:
        raise RefusedError(422, f"No commit found for SHA: {call.parts['ref']}")
    return Answer(200, call.forms.commit(call.state.commits[sha]))


def git_blob(call):
    content = call.state.blob(call.parts["file_sha"])
    if content is None:
        raise RefusedError(404, "Not Found")
    return Answer(200, call.forms.blob(content))


def git_tree(call):
    commit = _commit(call, call.parts["tree_sha"])
    items = call.forms.tree_items(commit, deep="recursive" in call.query)
    body = {
        "sha": commit.sha,
        "tree": items[: call.state.most_tree_items],
        "truncated": len(items) > call.state.most_tree_items,
    }
    return Answer(200, body)


def permission(call):
    login = call.parts["username"]
    level = call.state.levels.get(login, "none" if call.repository.private else "read")
    legacy = LEGACY.get(level, level)
    return Answer(200, {"permission": legacy, "role_name": level})


def _commit(call, ref):
    sha = call.state.resolve(call.repository, ref)
    if sha is None:
        raise RefusedError(404, f"No commit found for the ref {ref}")
    return call.state.commits[sha]
