"""What is answered to a comment that asks for something."""

from collections.abc import Iterable

from ci_perf.report import accept_help, escape, markdown
from ci_perf.report.accept_help import Accepted, AcceptHint
from ci_perf.report.escape import Command, Sentence, Words

_MAX_LINES = 60


def refused(login: str, reason: str, hint: AcceptHint | None) -> str:
    """Say why nothing was done, and what can be done instead where there is another way."""
    said = markdown.phrase(
        (Words("Not accepted for "), login, Words(": "), Sentence(reason), Words("."))
    )
    if hint is None:
        return f"{said}\n"
    by_hand = escape.fence(accept_help.commands(hint), info="sh")
    where = "To accept the numbers by hand, on the branch of the pull request:"
    return f"{said}\n\n{where}\n\n{by_hand}\n"


def unchanged(login: str) -> str:
    """Say that there was nothing to do."""
    return markdown.phrase(
        (
            Words("Nothing to accept for "),
            login,
            Words(": every baseline already has the measured numbers."),
        )
    )


def accepted_before(login: str, sha: str) -> str:
    """Say that it was done, where the answer to it was lost."""
    return markdown.phrase(
        (Words("Already accepted for "), login, Words(", in commit "), sha[:12], Words("."))
    )


def accepted(login: str, sha: str, files: Iterable[Accepted]) -> str:
    """Say what was committed, and what happens next."""
    said = markdown.phrase(
        (
            Words("Accepted for "),
            login,
            Words(", in commit "),
            sha[:12],
            Words(" on top of the measured commit."),
        )
    )
    listed = accept_help.result(files).splitlines()
    shown = listed[:_MAX_LINES] + (["…"] if len(listed) > _MAX_LINES else [])
    next_ = markdown.phrase(
        (
            Words(
                "GitHub starts no workflow for a commit made with the token of a job. If no check "
                "starts, close and reopen the pull request, or push an empty commit: "
            ),
            Command("git commit --allow-empty -m 'Run the checks'"),
            Words("."),
        )
    )
    return f"{said}\n\n{escape.fence(chr(10).join(shown), info='text')}\n\n{next_}\n"
