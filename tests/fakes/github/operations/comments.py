"""Comments of a pull request."""

from tests.fakes.github.call import Answer, RefusedError

# Says the message; the true limit is said to be larger, in bytes. The smaller one is the safe one.
LONGEST = 65_536
TOO_LONG = {
    "resource": "IssueComment",
    "code": "unprocessable",
    "field": "data",
    "message": f"Body is too long (maximum is {LONGEST} characters)",
}
BLANK = {"resource": "IssueComment", "code": "missing_field", "field": "body"}


def listed(call):
    call.found(call.state.pulls, call.number("issue_number"))
    since = call.query.get("since", "")
    found = call.state.comments_of(call.number("issue_number"))
    comments = [comment for comment in found if comment.updated_at >= since]
    page, headers = call.page(comments)
    return Answer(200, [call.forms.comment(comment) for comment in page], headers)


def create(call):
    call.found(call.state.pulls, call.number("issue_number"))
    body = _accepted(call.body["body"])
    comment = call.state.add_comment(call.number("issue_number"), body, call.login)
    written = call.forms.comment(comment)
    return Answer(201, written, {"Location": written["url"]})


def get(call):
    return Answer(200, call.forms.comment(_comment(call)))


def update(call):
    comment = _comment(call)
    _refuse_others(call, comment)
    call.state.edit_comment(comment, _accepted(call.body["body"]))
    return Answer(200, call.forms.comment(comment))


def delete(call):
    comment = _comment(call)
    _refuse_others(call, comment)
    del call.state.comments[comment.id]
    return Answer(204)


def _comment(call):
    return call.found(call.state.comments, call.number("comment_id"))


def _accepted(body):
    if not body.strip():
        raise RefusedError(422, "Validation Failed", [BLANK])
    if len(body) > LONGEST:
        raise RefusedError(422, "Validation Failed", [TOO_LONG])
    return body


def _refuse_others(call, comment):
    """Who may write to a repository may edit everybody's; a job counts as one that may."""
    level = call.state.levels.get(call.login, "none")
    if call.login != comment.author and level not in {"write", "maintain", "admin"}:
        raise RefusedError(403, "Must have admin rights to Repository.")
