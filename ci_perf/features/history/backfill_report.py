"""What `ci-perf history --measure` did, as a page: each commit, and what comes next."""

from collections import Counter
from collections.abc import Iterator

from ci_perf.features.history.backfilled import Backfill, BackfilledCommit
from ci_perf.report import units
from ci_perf.report.commands import quote_word
from ci_perf.report.escape import Command, Phrase, Sentence, Words
from ci_perf.report.tables import Page, Table

_ID = 10
_USUAL = "baselines"
_OUTCOMES = {
    "measured": "measured",
    "known": "measured before",
    "passed": "older than one with a session",
    "same_program": "same program, not launched",
    "failed": "failed",
    "left": "left for the next call",
}


def page(backfill: Backfill) -> Page:
    """Count what became of the commits, list them, and say what to do next."""
    counted: Counter[str] = Counter(each.outcome for each in backfill.commits)
    numbers = ", ".join(
        f"{counted[outcome]:,} {words}" for outcome, words in _OUTCOMES.items() if counted[outcome]
    )
    total = units.render_count(len(backfill.commits), "commit")
    title: Phrase = (Words(f"{total} of "), backfill.suite, Words(f": {numbers or 'none'}"))
    heading = ("commit", "became")
    table = Table(heading, [_row(each) for each in backfill.commits], left=heading[1:])
    return [title, table, *_next(backfill, counted)]


def _row(each: BackfilledCommit) -> tuple[str | Phrase, ...]:
    name = f"{each.commit.id[:_ID]} {each.commit.title}".strip()
    words = _OUTCOMES[each.outcome]
    said: Phrase = (Words(words),)
    if each.note:
        said = (Words(f"{words}: "), Sentence(each.note))
    return (name, said)


def _next(backfill: Backfill, counted: Counter[str]) -> Iterator[Phrase]:
    if backfill.is_interrupted:
        yield (Words("It was interrupted: the same command goes on."),)
    if counted["left"]:
        words = (
            "A baseline file holds 20 sessions, and git the older ones: commit the files, then "
            "the same command goes on."
        )
        yield (Words(words),)
    if counted["measured"] or counted["left"]:
        folder = quote_word(backfill.baselines)
        command = Command(f"git add {folder} && git commit")
        named = "" if backfill.baselines == _USUAL else f" --baselines {folder}"
        shown = Command(f"ci-perf history{named}")
        yield (Words("next: "), command, Words(", then "), shown)
