"""Check runs."""

from tests.fakes.github.call import Answer, RefusedError
from tests.fakes.github.state import CheckRun

LONGEST_DESCRIPTION = 140


def create(call):
    _refuse_unknown_commit(call, call.body["head_sha"])
    check = CheckRun(
        id=call.state.next_id(),
        head_sha=call.body["head_sha"],
        name=call.body["name"],
        status="queued",
        conclusion=None,
        started_at=call.body.get("started_at"),
        completed_at=None,
        # What a job asks for here is ignored by GitHub: it links to the job's own log.
        details_url=f"{call.forms.html}/{call.repository.full_name}/actions",
        external_id=call.body.get("external_id", ""),
        output={"title": None, "summary": None, "text": None},
    )
    _change(call, check)
    call.state.checks[check.id] = check
    return Answer(201, call.forms.check_run(check))


def update(call):
    check = _check(call)
    _change(call, check)
    return Answer(200, call.forms.check_run(check))


def listed(call):
    """The latest of each name, unless all are asked for."""
    sha = _commit(call)
    found = {}
    for check in call.state.checks.values():
        wanted = check.name == call.query.get("check_name", check.name)
        wanted = wanted and check.status == call.query.get("status", check.status)
        if check.head_sha == sha and wanted:
            found[check.id if call.query.get("filter") == "all" else check.name] = check
    page, headers = call.page(list(found.values())[::-1])
    runs = [call.forms.check_run(check) for check in page]
    return Answer(200, {"total_count": len(found), "check_runs": runs}, headers)


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


def _check(call):
    return call.found(call.state.checks, call.number("check_run_id"))


def _commit(call):
    sha = call.state.resolve(call.repository, call.parts["ref"])
    if sha is None:
        raise RefusedError(422, f"No commit found for SHA: {call.parts['ref']}")
    return sha


def _refuse_unknown_commit(call, sha):
    if sha not in call.state.commits:
        raise RefusedError(422, f"No commit found for SHA: {sha}")
