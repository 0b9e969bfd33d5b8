"""Why something that a run says is not believed, in words for the report."""

from collections.abc import Iterable

from ci_perf.report import markdown
from ci_perf.report.escape import Markdown, Sentence, Words
from ci_perf.report.words import Phrase


def other_commit(found: str, head: str) -> Phrase:
    """Say that the numbers are not of the commit at the head."""
    return (
        Words("Measured was the commit "),
        found[:12],
        Words(", not "),
        head[:12],
        Words(" at the head: these numbers may be those of other code."),
    )


def changed_files() -> Phrase:
    """Say that the numbers are of no commit at all."""
    return (Words("Measured was a checkout with changed files: no commit has these numbers."),)


def foreign_base(found: str) -> Phrase:
    """Say that pairs are left alone."""
    return (
        Words("Its pairs are left alone: they were launched against "),
        found[:12],
        Words(", which is no commit of the branch that judges."),
    )


def other_branch(base: str, judging: str) -> Phrase:
    """Say that the pull request goes to another branch than the one whose baselines judge it."""
    return (
        Words("The pull request goes to the branch "),
        base,
        Words(", and is judged by the branch "),
        judging,
        Words(": by its baselines, and by pairs against its commits only."),
    )


def unproven(workloads: int) -> Phrase:
    """Say that numbers look worse, and that no pairs that count prove or clear them."""
    several = "s look" if workloads > 1 else " looks"
    return (
        Words(
            f"{workloads:,} workload{several} slower, and no pairs that count say whether "
            "the change is why, so there is no answer."
        ),
    )


def not_comparable(workloads: int) -> Phrase:
    """Say that a fork may not choose by what it is judged."""
    several = "s" if workloads > 1 else ""
    return (
        Words(
            f"{workloads:,} workload{several} could not be compared with the baselines, so there "
            "is no answer, whatever pairs of a fork say."
        ),
    )


def not_reported(reason: str) -> Phrase:
    """Say what is missing beside what is shown."""
    return (Words("Not reported: "), Sentence(reason))


def note(found: Iterable[Phrase]) -> Markdown:
    """Show all of them below the headline."""
    lines = [f"> ⚠️ {markdown.phrase(one)}" for one in found]
    return Markdown("\n\n".join(lines))
