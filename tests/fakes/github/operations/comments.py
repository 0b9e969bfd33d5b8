"""Comments of a pull request or an issue."""

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
    found = call.page(call.state.comments_of(call.number("issue_number")))
    return Answer(200, [call.forms.comment(comment) for comment in found])


def create(call):
    call.found({**call.state.pulls, **call.state.issues}, call.number("issue_number"))
    body = accepted(call.body["body"])
    comment = call.state.add_comment(call.number("issue_number"), body, call.login)
    return Answer(201, call.forms.comment(comment))


def get(call):
    return Answer(200, call.forms.comment(_comment(call)))


def update(call):
    comment = _comment(call)
    call.state.edit_comment(comment, accepted(call.body["body"]))
    return Answer(200, call.forms.comment(comment))


def delete(call):
    del call.state.comments[_comment(call).id]
    return Answer(204)


def _comment(call):
    return call.found(call.state.comments, call.number("comment_id"))


def accepted(body):
    if not body.strip():
        raise RefusedError(422, "Validation Failed", [BLANK])
    if len(body) > LONGEST:
        raise RefusedError(422, "Validation Failed", [TOO_LONG])
    return body
