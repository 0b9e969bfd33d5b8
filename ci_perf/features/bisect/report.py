"""The answer of `ci-perf bisect` as a page: the commit, or the range, and what was measured."""

import math
import shlex
from collections.abc import Iterator

from ci_perf.features.bisect.bisection import BisectedCommit, Bisection, CommitAnswer
from ci_perf.model.comparison import Change
from ci_perf.report import phrases, units
from ci_perf.report.commands import quote_word
from ci_perf.report.escape import Command, Phrase, Sentence, Words
from ci_perf.report.phrases import fill
from ci_perf.report.tables import Block, Page, Table

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
    if bisection.outcome == "found":
        parts += _about_culprit(bisection)
    elif not _is_same_program(bisection):
        parts += _why_no_answer(bisection)
    parts.append(_spent(bisection))
    table = _table(bisection)
    if table.rows:
        parts.append(table)
    if not _is_same_program(bisection):
        parts += _about_others(bisection)
    parts += [fill("note: {note}", note=(Sentence(note),)) for note in bisection.notes]
    return parts


def name(each: BisectedCommit) -> str:
    """Return what people call a commit: the beginning of its name, and its first line."""
    if not each.commit.date:  # a version of a package
        return each.commit.id
    return f"{each.commit.id[:_ID]} {each.commit.title}".strip()


def _noun(bisection: Bisection) -> str:
    return "version" if bisection.over else "commit"


def _parent(bisection: Bisection) -> str:
    return "the version before" if bisection.over else "its parent"


def _headline(bisection: Bisection) -> Phrase:
    named: dict[str, Phrase] = {
        "good": (bisection.good,),
        "bad": (bisection.bad,),
        "workload": (bisection.workload,),
    }
    if _is_same_program(bisection):
        said = "{bad} runs the same program as {good} in {workload}: nothing can have made it worse"
        return fill(said, **named)
    change = bisection.commits[-1].change
    if bisection.outcome == "not_worse":
        said = "{bad} is not proven worse than {good} in {workload}"
        return fill(said + (": {change}" if change else ""), change=_change(change), **named)
    if bisection.outcome == "found":
        assert bisection.parent is not None
        culprit = (f"{bisection.over} {name(bisection.commits[bisection.high])}".strip(),)
        step = _change(bisection.parent.change or change)
        return fill("{name} made {workload} worse: {change}", name=culprit, change=step, **named)
    left = units.render_count(bisection.high - bisection.low, _noun(bisection))
    return fill(
        f"One of {left} made {{workload}} worse: {{change}}", change=_change(change), **named
    )


def _is_same_program(bisection: Bisection) -> bool:
    return bisection.outcome == "not_worse" and bool(bisection.commits[-1].same_as)


def _change(change: Change | None) -> Phrase:
    if change is None:
        return ()
    unit = phrases.unit(change.metric)
    both = units.both(units.value(change.base, unit), units.value(change.head, unit))
    title = phrases.metric_title(change.metric)
    if change.ratio is None:
        return (title, Words(f" {both}"))
    low, high = (change.interval.low, change.interval.high) if change.interval else (None, None)
    return (title, Words(f" {units.change(change.ratio, low, high)}, {both}"))


def _about_culprit(bisection: Bisection) -> Iterator[Phrase]:
    culprit, parent = bisection.commits[bisection.high], bisection.parent
    assert parent is not None
    assert parent.change is not None
    commit = culprit.commit
    day = commit.date[:_DAY]
    if bisection.over:
        before = bisection.commits[bisection.low].commit.id
        yield (bisection.over, Words(" "), before, Words(" → "), commit.id)
    else:
        yield fill(f"By {{author}}, {day}: `git show {commit.id}`", author=(commit.author,))
    pairs = units.render_count(parent.change.pairs, "pair")
    if parent.launched:
        yield (Words(f"{pairs} of it and {_parent(bisection)} have shown it."),)
    else:
        words = (
            f"{pairs} have shown it: its parent runs the same program as the known-good commit, so "
            "theirs stand for it."
        )
        yield (Words(words),)
    change = bisection.commits[-1].change
    whole, step = (change.ratio if change else None) or 1.0, parent.change.ratio
    if whole > 1 and step and math.log(step) < _MOST_OF_IT * math.log(whole):
        words = (
            f"From the known-good to the known-bad {_noun(bisection)} it is "
            f"{units.percent(whole - 1)}: other {_noun(bisection)}s have added to it. Bisect "
            "before and after this one to find them."
        )
        yield (Words(words),)
    if culprit.parents > 1:
        merge = commit.id[:_ID]
        command = (
            f"ci-perf bisect $(git merge-base {merge}^1 {merge}^2) {merge}^2 {bisection.workload} "
            f"--suite {bisection.suite}"
        )
        words = "It is a merge: to find the commit that it brought, {command}"
        yield fill(words, command=(Command(command),))


def _continue(bisection: Bisection) -> Phrase:
    """Return the command that searches in what is left."""
    if bisection.over:
        left = bisection.commits[bisection.low : bisection.high + 1]
        over = f"{bisection.over}={','.join(each.commit.id for each in left)}"
        # `quote_word` would cut a long list of versions off.
        words = [bisection.workload, "--over", shlex.quote(over)]
        words += ["--setup", shlex.quote(bisection.setup)]
    else:
        ends = (bisection.commits[at].commit.id[:_ID] for at in (bisection.low, bisection.high))
        words = [*map(quote_word, ends), bisection.workload]
    return (Command(f"ci-perf bisect {' '.join(words)} --suite {bisection.suite}"),)


def _why_no_answer(bisection: Bisection) -> Iterator[Phrase]:
    if bisection.outcome == "not_worse":
        yield fill(
            f"Nothing was searched for. Name {_noun(bisection)}s between which a check has shown a "
            "regression, or lower the limit of the metric in suite.toml."
        )
        return
    within = bisection.commits[bisection.low + 1 : bisection.high + 1]
    if bisection.ended == "budget":
        yield fill("The budget is spent: it goes on with {again}", again=_continue(bisection))
    if bisection.ended == "interrupted":
        yield fill("It was interrupted: it goes on with {again}", again=_continue(bisection))
    if any(each.answer == CommitAnswer.UNDECIDED for each in within):
        yield fill(
            f"Noise allows no more: pairs of an undecided {_noun(bisection)} do not tell whether "
            "it lies nearer to the known-good or to the known-bad one."
        )
    if any(each.answer == CommitAnswer.FAILED for each in within):
        yield (Words(f"{_noun(bisection).title()}s that cannot be measured may be the one, too."),)
    if bisection.parent is not None:
        seen = _change(bisection.parent.change) or (Sentence(bisection.parent.note),)
        words = f"its pairs with {_parent(bisection)} do not show it: {{seen}}"
        yield fill(f"The search ended at one {_noun(bisection)}, and {words}", seen=seen)


def _spent(bisection: Bisection) -> Phrase:
    commits = units.render_count(len(bisection.commits) - 1, _noun(bisection))
    sessions = units.render_count(bisection.sessions, "session")
    said = f"{commits} from {{good}} to {{bad}}: {sessions}, {units.duration(bisection.duration_s)}"
    return fill(said, good=(bisection.good,), bad=(bisection.bad,))


def _table(bisection: Bisection) -> Table:
    heading = (_noun(bisection), "pairs with the known-good one", "answer")
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
    if same := sum(bool(each.same_as) for each in bisection.commits):
        commits = "1 commit was not launched: it runs"
        if same > 1:
            commits = f"{same:,} commits were not launched: each of them runs"
        yield (Words(f"{commits} the same program as one that was measured."),)
    before = bisection.commits[: bisection.low]
    if first := next((each for each in before if each.answer == CommitAnswer.LIKE_BAD), None):
        yield fill(
            f"Also before, {_noun(bisection)}s were like the bad one, and later ones were not: "
            "{first}. What is named above is the last time that it became worse.",
            first=(name(first),),
        )
    shown = sum(each.change is not None or bool(each.note) for each in bisection.commits)
    if shown > _MOST_ROWS:
        yield (Words(f"{shown - _MOST_ROWS:,} further rows are in the JSON."),)
