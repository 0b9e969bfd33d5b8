"""Payloads of events, as a runner writes them to a file, made of what a GitHub remembers.

`problems` holds a payload, made here or elsewhere, against GitHub's description of webhooks.
"""

from collections.abc import Callable
from typing import Any

from tests.fakes.github import schema
from tests.fakes.github.forms_of_changes import WORKFLOW

# Events with actions; each of them and its action is one webhook of the description.
WITH_ACTION = {"pull_request", "workflow_run", "merge_group", "issue_comment"}
# No webhook: a runner makes it up.
UNDESCRIBED = {"schedule"}
NOBODY = "0" * 40


def problems(name, payload, flavour="github.com"):
    """List what in the payload of an event does not fit the description of its webhook.

    GHES has merge queues and does not describe them; they are those of github.com.
    """
    if name in UNDESCRIBED:
        return []
    words = [name, payload.get("action", "")] if name in WITH_ACTION else [name]
    webhook = "-".join(words).replace("_", "-")
    known = [f for f in (flavour, "github.com") if webhook in schema.load(f).webhooks()]
    if not known:
        return [f"{webhook}: no webhook that is described"]
    return schema.load(known[0]).problems_of_event(webhook, payload)


def payload(forms, name, action=None, **details):
    """Return the payload of an event about what there is."""
    makers: dict[str, Callable[..., dict[str, Any]]] = {
        "pull_request": _pull_request,
        "push": _push,
        "workflow_run": _workflow_run,
        "merge_group": _merge_group,
        "workflow_dispatch": _workflow_dispatch,
        "issue_comment": _issue_comment,
        "schedule": _schedule,
    }
    made = makers[name](forms, *filter(None, [action]), **details)
    return made if name in UNDESCRIBED else {**_everywhere(forms), **made}


def _everywhere(forms):
    home = _home(forms)
    return {"repository": forms.repository(home), "sender": forms.user(home.owner)}


def _home(forms):
    return next(iter(forms.state.repositories.values()))


def _pull_request(forms, action, *, number):
    pull = forms.state.pulls[number]
    made = {"action": action, "number": number, "pull_request": forms.pull(pull)}
    if action == "synchronize":
        before = forms.state.commits[pull.head_sha].parents
        made |= {"before": (*before, NOBODY)[0], "after": pull.head_sha}
    return made


def _push(forms, *, branch="main"):
    home = _home(forms)
    sha = home.branches[branch]
    commit = forms.state.commits[sha]
    written = _commit(forms, commit)
    page = forms.repository(home)["html_url"]
    return {
        "ref": f"refs/heads/{branch}",
        "before": (*commit.parents, NOBODY)[0],
        "after": sha,
        "created": not commit.parents,
        "deleted": False,
        "forced": False,
        "base_ref": None,
        "compare": f"{page}/compare/{sha[:12]}",
        "commits": [written],
        "head_commit": written,
        "pusher": {"name": home.owner, "email": f"{home.owner}@example.com"},
    }


def _commit(forms, commit):
    who = {"name": commit.author, "email": f"{commit.author}@example.com"}
    parents = [forms.state.commits[sha].files for sha in commit.parents] or [{}]
    return {
        "id": commit.sha,
        "tree_id": commit.sha,
        "distinct": True,
        "message": commit.message,
        "timestamp": commit.date,
        "url": f"{forms.html}/commit/{commit.sha}",
        "author": who,
        "committer": who,
        "added": sorted(set(commit.files) - set(parents[0])),
        "removed": sorted(set(parents[0]) - set(commit.files)),
        "modified": sorted(p for p, c in commit.files.items() if parents[0].get(p, c) != c),
    }


def _workflow_run(forms, action, *, run_id):
    run = forms.run(forms.state.runs[run_id])
    return {"action": action, "workflow_run": run, "workflow": _workflow(forms, run)}


def _workflow(forms, run):
    page = forms.repository(_home(forms))["html_url"]
    file = run["path"].partition("@")[0]
    return {
        "id": WORKFLOW,
        "node_id": f"W_{WORKFLOW}",
        "name": run["name"],
        "path": file,
        "state": "active",
        "created_at": "2026-01-01T00:00:00Z",
        "updated_at": "2026-01-01T00:00:00Z",
        "url": run["workflow_url"],
        "html_url": f"{page}/blob/main/{file}",
        "badge_url": f"{page}/workflows/{run['name']}/badge.svg",
    }


def _merge_group(forms, action, *, number, branch="main"):
    pull = forms.state.pulls[number]
    commit = forms.state.commits[pull.head_sha]
    written = _commit(forms, commit)
    head = {key: written[key] for key in ("id", "tree_id", "message", "timestamp")}
    return {
        "action": action,
        "merge_group": {
            "head_sha": pull.head_sha,
            "head_ref": f"refs/heads/gh-readonly-queue/{branch}/pr-{number}-{pull.base_sha}",
            "base_sha": pull.base_sha,
            "base_ref": f"refs/heads/{branch}",
            "head_commit": {**head, "author": written["author"], "committer": written["committer"]},
        },
    }


def _workflow_dispatch(_forms, *, inputs=None, ref="refs/heads/main", workflow=None):
    file = workflow or ".github/workflows/perf.yml"
    return {"inputs": inputs, "ref": ref, "workflow": file}


def _issue_comment(forms, action, *, comment_id):
    """The person who writes the comment is the one who sends the event."""
    comment = forms.state.comments[comment_id]
    pull = forms.state.pulls[comment.number]
    return {
        "action": action,
        "issue": forms.issue(pull),
        "comment": forms.comment(comment),
        "sender": forms.user(comment.author),
    }


def _schedule(_forms, *, cron="17 3 * * *"):
    return {"schedule": cron, "workflow": ".github/workflows/nightly.yml"}
