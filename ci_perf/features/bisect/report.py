"""The answer of `ci-perf bisect` as a page: the commit, or the range, and what was measured."""

import math
from collections.abc import Iterator

from ci_perf.features.bisect.bisection import BisectedCommit, Bisection, CommitAnswer
from ci_perf.features.explain.page import build_page
from ci_perf.model.comparison import Change
from ci_perf.report import phrases, units
from ci_perf.report.commands import quote_word
from ci_perf.report.escape import Command, Sentence, Words
from ci_perf.report.tables import Block, Page, Phrase, Table

_ID = 10
_DAY = len("2026-11-21")
_ANSWERS = {
    CommitAnswer.LIKE_GOOD: "like the good one",
    CommitAnswer.LIKE_BAD: "like the bad one",
    CommitAnswer.UNDECIDED: "undecided",
    CommitAnswer.FAILED: "failed",
    CommitAnswer.OPEN: "not measured",
}
# Below this share of the whole loss (in logarithms), somebody should look for the rest.
_MOST_OF_IT = 0.7
_MOST_ROWS = 40


def page(bisection: Bisection) -> Page:
    """Say the commit or the range, then what to do, then what each session has said."""
    parts: list[Block] = [_headline(bisection)]
    parts += _about_culprit(bisection)
    parts += _why_no_answer(bisection)
    parts.append(_spent(bisection))
    table = _table(bisection)
    if table.rows:
        parts.append(table)
    parts += _about_others(bisection)
    parts += [(Words("note: "), Sentence(note)) for note in bisection.notes]
    if bisection.explained is not None:
        parts += build_page(bisection.explained, operators=False)
    return parts


def name(each: BisectedCommit) -> str:
    """Return what people call a commit: the beginning of its name, and its first line."""
    return f"{each.commit.id[:_ID]} {each.commit.title}".strip()


def _headline(bisection: Bisection) -> Phrase:
    workload = bisection.workload
    if _is_same_program(bisection):
        same = (bisection.bad, Words(" runs the same program as "), bisection.good)
        return (*same, Words(" in "), workload, Words(": nothing can have made it worse"))
    if bisection.outcome == "not_worse":
        change = bisection.commits[-1].change
        seen = (Words(": "), *_change(change)) if change else ()
        first = (bisection.bad, Words(" is not proven worse than "), bisection.good)
        return (*first, Words(" in "), workload, *seen)
    change = _whole(bisection)
    assert change is not None
    if bisection.outcome == "found":
        assert bisection.parent is not None
        step = bisection.parent.change or change
        return (
            name(_culprit(bisection)),
            Words(" made "),
            workload,
            Words(" worse: "),
            *_change(step),
        )
    left = units.render_count(bisection.high - bisection.low, "commit")
    return (Words(f"One of {left} made "), workload, Words(" worse: "), *_change(change))


def _is_same_program(bisection: Bisection) -> bool:
    return bisection.outcome == "not_worse" and bool(bisection.commits[-1].same_as)


def _change(change: Change) -> Phrase:
    unit = phrases.unit(change.metric)
    both = units.both(units.value(change.base, unit), units.value(change.head, unit))
    title = phrases.metric_title(change.metric)
    if change.ratio is None:
        return (title, Words(f" {both}"))
    low, high = (change.interval.low, change.interval.high) if change.interval else (None, None)
    return (title, Words(f" {units.change(change.ratio, low, high)}, {both}"))


def _culprit(bisection: Bisection) -> BisectedCommit:
    return bisection.commits[bisection.high]


def _whole(bisection: Bisection) -> Change | None:
    return bisection.commits[-1].change


def _about_culprit(bisection: Bisection) -> Iterator[Phrase]:
    if bisection.outcome != "found":
        return
    culprit = _culprit(bisection)
    day = Words(f", {culprit.commit.date[:_DAY]}: ")
    yield (Words("By "), culprit.commit.author, day, Command(f"git show {culprit.commit.id}"))
    yield _evidence(bisection)
    if (rest := _rest(bisection)) is not None:
        yield rest
    if culprit.parents > 1:
        yield _merge(bisection)


def _evidence(bisection: Bisection) -> Phrase:
    parent = bisection.parent
    assert parent is not None
    assert parent.change is not None
    pairs = units.render_count(parent.change.pairs, "pair")
    if parent.launched:
        return (Words(f"{pairs} of it and its parent have shown it."),)
    words = (
        f"{pairs} have shown it: its parent runs the same program as the known-good commit, so "
        "theirs stand for it."
    )
    return (Words(words),)


def _rest(bisection: Bisection) -> Phrase | None:
    """Say that the culprit is not the whole of it, where others must have added to it."""
    whole, parent = _whole(bisection), bisection.parent
    step = parent.change if parent else None
    if whole is None or step is None or not (whole.ratio and step.ratio and whole.ratio > 1):
        return None
    if math.log(step.ratio) >= _MOST_OF_IT * math.log(whole.ratio):
        return None
    words = (
        f"From the known-good to the known-bad commit it is {units.percent(whole.ratio - 1)}: "
        "other commits have added to it. Bisect before and after this one to find them."
    )
    return (Words(words),)


def _merge(bisection: Bisection) -> Phrase:
    merge = _culprit(bisection).commit.id[:_ID]
    command = (
        f"ci-perf bisect $(git merge-base {merge}^1 {merge}^2) {merge}^2 {bisection.workload} "
        f"--suite {bisection.suite}"
    )
    return (Words("It is a merge: to find the commit that it brought, "), Command(command))


def _within(bisection: Bisection) -> Command:
    """Return the command that searches in what is left."""
    ends = (bisection.commits[at].commit.id[:_ID] for at in (bisection.low, bisection.high))
    return _command(bisection, *ends)


def _command(bisection: Bisection, good: str, bad: str, *more: str) -> Command:
    """Return the command of a search, with these options, too."""
    words = [quote_word(good), quote_word(bad), bisection.workload, "--suite", bisection.suite]
    return Command(f"ci-perf bisect {' '.join([*words, *more])}")


def _why_no_answer(bisection: Bisection) -> Iterator[Phrase]:
    if _is_same_program(bisection):
        return
    if bisection.outcome == "not_worse":
        yield (
            Words(
                "Nothing was searched for. Name commits between which a check has shown a "
                "regression, or lower the limit of the metric in suite.toml."
            ),
        )
        return
    if bisection.outcome == "found":
        return
    within = bisection.commits[bisection.low + 1 : bisection.high + 1]
    if bisection.ended == "budget":
        yield (Words("The budget is spent: it goes on with "), _within(bisection))
    if bisection.ended == "interrupted":
        yield (Words("It was interrupted: it goes on with "), _within(bisection))
    if any(each.answer == CommitAnswer.UNDECIDED for each in within):
        yield (
            Words(
                "Noise allows no more: pairs of an undecided commit do not tell whether it lies "
                "nearer to the known-good or to the known-bad one."
            ),
        )
    if any(each.answer == CommitAnswer.FAILED for each in within):
        yield (Words("Commits that cannot be measured may be the one, too."),)
    if bisection.parent is not None:
        seen = bisection.parent.change
        said = _change(seen) if seen else (Sentence(bisection.parent.note),)
        words = "The search ended at one commit, and its pairs with its parent do not show it: "
        yield (Words(words), *said)


def _spent(bisection: Bisection) -> Phrase:
    commits = units.render_count(len(bisection.commits) - 1, "commit")
    sessions = units.render_count(bisection.sessions, "session")
    took = units.duration(bisection.duration_s)
    return (
        Words(f"{commits} from "),
        bisection.good,
        Words(" to "),
        bisection.bad,
        Words(f": {sessions}, {took}"),
    )


def _table(bisection: Bisection) -> Table:
    heading = ("commit", "pairs with the known-good one", "answer")
    shown = [
        (at, each)
        for at, each in enumerate(bisection.commits)
        if each.change is not None
        or each.note
        or (bisection.outcome != "not_worse" and bisection.low <= at <= bisection.high)
    ]
    rows = [_row(each, is_first=at == 0) for at, each in shown[:_MOST_ROWS]]
    return Table(heading, rows, left=heading[1:])


def _row(each: BisectedCommit, *, is_first: bool) -> tuple[str | Phrase, ...]:
    said: Phrase = (units.NOTHING,)
    if each.change is not None:
        said = _change(each.change)
    elif each.note:
        said = (Sentence(each.note),)
    elif each.same_as:
        said = (Words("the same program as "), each.same_as[:_ID])
    answer = "the known-good one" if is_first else _ANSWERS[each.answer]
    return (name(each), said, (Words(answer),))


def _about_others(bisection: Bisection) -> Iterator[Phrase]:
    if _is_same_program(bisection):
        return
    same = sum(bool(each.same_as) for each in bisection.commits)
    if same:
        words = (
            f"{units.render_count(same, 'commit')} not launched: each runs the same program as one "
            "that was measured."
        )
        yield (Words(words),)
    before = [
        each for each in bisection.commits[: bisection.low] if each.answer == CommitAnswer.LIKE_BAD
    ]
    if before:
        yield (
            Words("Also before, commits were like the bad one, and later ones were not: "),
            name(before[0]),
            Words(". What is named above is the last time that it became worse."),
        )
    shown = sum(each.change is not None or bool(each.note) for each in bisection.commits)
    if shown > _MOST_ROWS:
        yield (Words(f"{shown - _MOST_ROWS:,} further rows are in the JSON."),)
