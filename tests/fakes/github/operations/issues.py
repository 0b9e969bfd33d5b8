"""Issues: GitHub lists pull requests among them."""

from tests.fakes.github.call import Answer, RefusedError
from tests.fakes.github.operations.comments import accepted
from tests.fakes.github.state import Issue

UNASSIGNABLE = {"resource": "Issue", "code": "invalid", "field": "assignees"}


def listed(call):
    """The newest first."""
    wanted = call.query.get("state", "open")
    issues = {**call.state.pulls, **call.state.issues}
    found = [
        issue
        for _, issue in sorted(issues.items())[::-1]
        if issue.state in {wanted, issue.state if wanted == "all" else wanted}
        and call.query.get("creator", issue.author) == issue.author
    ]
    return Answer(200, [call.forms.any_issue(issue) for issue in call.page(found)])


def create(call):
    assignees = call.body.get("assignees", [])
    if any(not _is_assignable(call, login) for login in assignees):
        raise RefusedError(422, "Validation Failed", [UNASSIGNABLE])
    issue = Issue(
        number=max([*call.state.pulls, *call.state.issues], default=0) + 1,
        author=call.login,
        title=call.body["title"],
        bodies=[accepted(call.body["body"])],
        assignees=assignees,
    )
    call.state.issues[issue.number] = issue
    return Answer(201, call.forms.any_issue(issue))


def update(call):
    issue = call.found(call.state.issues, call.number("issue_number"))
    if "body" in call.body:
        issue.bodies.append(accepted(call.body["body"]))
    issue.title = call.body.get("title", issue.title)
    issue.state = call.body.get("state", issue.state)
    issue.state_reason = call.body.get("state_reason", issue.state_reason)
    return Answer(200, call.forms.any_issue(issue))


def check_assignee(call):
    if not _is_assignable(call, call.parts["assignee"]):
        raise RefusedError(404, "Not Found")
    return Answer(204)


def _is_assignable(call, login):
    """Who may at least read a private repository, and who may write to a public one."""
    return call.state.levels.get(login, "none") in {"triage", "write", "maintain", "admin"}
