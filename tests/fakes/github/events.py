"""Payloads of events, as a runner writes them to a file, made of what a GitHub remembers.

`problems` holds a payload, made here or elsewhere, against GitHub's description of webhooks.
"""

from collections.abc import Callable
from typing import Any

from tests.fakes.github import schema

# Events with actions; each of them and its action is one webhook of the description.
WITH_ACTION = {"pull_request", "workflow_run", "merge_group", "issue_comment"}
# No webhook: a runner makes it up.
UNDESCRIBED = {"schedule"}


def problems(name, payload, flavour="github.com"):
    """List what in the payload of an event does not fit the description of its webhook."""
    if name in UNDESCRIBED:
        return []
    described, webhook = _webhook(name, payload.get("action"), flavour)
    if described is None:
        return [f"{webhook}: no webhook that is described"]
    return described.problems_of_event(webhook, payload)


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
    made = makers[name](forms, **details)
    if name in UNDESCRIBED:
        return made
    home = next(iter(forms.state.repositories.values()))
    return {
        "repository": forms.repository(home) | {"default_branch": home.default_branch},
        "sender": forms.user(home.owner),
        **({"action": action} if action else {}),
        **made,
    }


def _webhook(name, action, flavour):
    """Find what describes a webhook: GHES has merge queues and does not describe them."""
    words = [name, action or ""] if name in WITH_ACTION else [name]
    webhook = "-".join(words).replace("_", "-")
    known = [f for f in (flavour, "github.com") if webhook in schema.load(f).webhooks()]
    return schema.load(known[0]) if known else None, webhook


def _pull_request(forms, *, number):
    return {"number": number, "pull_request": forms.pull(forms.state.pulls[number])}


def _push(forms, *, branch="main"):
    sha = next(iter(forms.state.repositories.values())).branches[branch]
    return {"ref": f"refs/heads/{branch}", "after": sha, "head_commit": {"id": sha}}


def _workflow_run(forms, *, run_id):
    return {"workflow_run": forms.run(forms.state.runs[run_id])}


def _merge_group(forms, *, number, branch="main"):
    pull = forms.state.pulls[number]
    return {
        "merge_group": {
            "head_sha": pull.head_sha,
            "head_ref": f"refs/heads/gh-readonly-queue/{branch}/pr-{number}-{pull.base_sha}",
            "base_sha": pull.base_sha,
            "base_ref": f"refs/heads/{branch}",
        },
    }


def _workflow_dispatch(_forms, *, inputs=None):
    return {"inputs": inputs, "ref": "refs/heads/main", "workflow": ".github/workflows/perf.yml"}


def _issue_comment(forms, *, comment_id):
    """The person who writes the comment is the one who sends the event."""
    comment = forms.state.comments[comment_id]
    return {
        "issue": forms.issue(forms.state.pulls[comment.number]),
        "comment": forms.comment(comment),
        "sender": forms.user(comment.author),
    }


def _schedule(_forms):
    return {"schedule": "17 3 * * *", "workflow": ".github/workflows/nightly.yml"}
