"""What a watch knows as a page: each culprit with its losses, and what has no answer."""

from ci_perf.model.watch import Creep, Culprit, Watched
from ci_perf.report import phrases, units
from ci_perf.report.escape import Command, Phrase, Sentence, Words
from ci_perf.report.phrases import fill
from ci_perf.report.tables import Block, Page

_ID = 12


def build_page(watched: Watched) -> Page:
    """Say what is open, then what is closed, suspected, or without an answer."""
    parts: list[Block] = [headline(watched)]
    for culprit in watched.culprits:
        parts += _describe_culprit(culprit, watched.suite)
    parts += [_describe_creep(each) for each in watched.creeps if each.state == "open"]
    for each in watched.suspicions:
        words = {
            "machine": "the machine changed, not the code",
            "searching": "looks worse than its history; pairs have no answer",
            "code": f"worse; {units.render_count(len(each.left), 'commit')} left to search",
        }
        if each.answer != "code" or each.left:
            parts.append(_line(each.workload, each.metric, (Words(words[each.answer]),)))
    for unanswered in watched.no_answer:
        parts.append(
            fill(
                "{workload}: no answer: {why}",
                workload=(unanswered.workload,),
                why=(Sentence(unanswered.why),),
            )
        )
    parts += [fill("note: {note}", note=(Sentence(note),)) for note in watched.notes]
    return parts


def headline(watched: Watched) -> Phrase:
    """Say the whole in a line."""
    states = [each.state for each in watched.culprits]
    said = [
        f"{units.render_count(states.count('open'), 'commit')} made it worse",
        *(f"{states.count(each)} {each}" for each in ("repaired", "accepted") if each in states),
    ]
    if creeps := sum(each.state == "open" for each in watched.creeps):
        said.append(units.render_count(creeps, "slow creep"))
    if not watched.complete:
        said.append("some are left for the next call")
    return (Words(f"{watched.suite} at {watched.head[:_ID]}: {', '.join(said)}"),)


def _describe_culprit(culprit: Culprit, suite: str) -> list[Block]:
    name = f"{culprit.commit[:_ID]} {culprit.subject}".strip()
    parts: list[Block] = [
        fill(
            f"{{name}}, by {{author}}: {culprit.state}{{why}}; {{command}}",
            name=(name,),
            author=(culprit.author.name,),
            why=(Words(", "), Sentence(culprit.reason)) if culprit.reason else (),
            command=(Command(culprit.write_command(suite)),),
        )
    ]
    for row in culprit.rows:
        change = units.change(row.change, row.low, row.high)
        parts.append(_line(row.workload, row.metric, (change,)))
    if culprit.cause is not None:
        said = f"{culprit.cause.function} in {culprit.cause.file}: {culprit.cause.text}"
        parts.append(fill("cause: {cause}", cause=(said,)))
    return parts


def _describe_creep(creep: Creep) -> Phrase:
    change = units.change(creep.change, creep.low, creep.high)
    since = Words(f" since {creep.since.day}, in small steps")
    why: Phrase = (Words("; "), Sentence(creep.reason)) if creep.reason else ()
    return _line(creep.workload, creep.metric, (change, since, *describe_largest(creep), *why))


def describe_largest(creep: Creep) -> Phrase:
    """Name the largest steps, or say that nobody can."""
    if not creep.largest:
        return (Words("; its history cannot tell them apart"),)
    said: Phrase = (Words("; the largest: "),)
    for at, step in enumerate(creep.largest):
        one_of = f"one of {step.commits} commits up to " if step.commits > 1 else ""
        head = f"{', ' if at else ''}{units.change(step.change)} by {one_of}"
        said = (*said, Words(head), f"{step.commit[:_ID]} {step.subject}".strip())
    return said


def _line(workload: str, metric: str, said: Phrase) -> Phrase:
    title = (phrases.metric_title(metric),)
    return fill("{workload}: {title}: {said}", workload=(workload,), title=title, said=said)
