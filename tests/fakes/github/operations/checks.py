"""Check runs."""

from tests.fakes.github.call import Answer, RefusedError
from tests.fakes.github.state import CheckRun


def create(call):
    _refuse_unknown_commit(call, call.body["head_sha"])
    check = CheckRun(
        id=call.state.next_id(),
        head_sha=call.body["head_sha"],
        name=call.body["name"],
        status="queued",
        conclusion=None,
        completed_at=None,
        external_id=call.body.get("external_id", ""),
        output={"title": None, "summary": None, "text": None},
    )
    _change(call, check)
    call.state.checks[check.id] = check
    return Answer(201, call.forms.check_run(check))


def update(call):
    check = call.found(call.state.checks, call.number("check_run_id"))
    _change(call, check)
    return Answer(200, call.forms.check_run(check))


def listed(call):
    """The latest of each name, unless all are asked for."""
    sha = call.state.resolve(call.repository, call.parts["ref"])
    _refuse_unknown_commit(call, sha)
    found = {}
    for check in call.state.checks.values():
        if check.head_sha == sha and check.name == call.query.get("check_name", check.name):
            found[check.id if call.query.get("filter") == "all" else check.name] = check
    runs = [call.forms.check_run(check) for check in call.page(list(found.values())[::-1])]
    return Answer(200, {"total_count": len(found), "check_runs": runs})


def _change(call, check):
    """Do what create and update have in common; annotations are only ever added."""
    output = call.body.get("output", {})
    conclusion = call.body.get("conclusion", check.conclusion)
    given = "completed" if "conclusion" in call.body else check.status
    status = call.body.get("status", given)
    if status == "completed" and conclusion is None:
        raise RefusedError(422, "Invalid request.\n\nMissing required keys: conclusion.")
    check.status, check.conclusion = status, conclusion if status == "completed" else None
    check.name = call.body.get("name", check.name)
    check.completed_at = call.state.now() if status == "completed" else None
    check.output.update({k: v for k, v in output.items() if k in check.output})
    check.annotations += output.get("annotations", [])
    check.history.append((check.status, check.conclusion))


def _refuse_unknown_commit(call, sha):
    if sha not in call.state.commits:
        raise RefusedError(422, f"No commit found for SHA: {sha}")
