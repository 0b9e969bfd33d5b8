"""A rehearsal as a page: what it proves, a table, what to do, and a picture."""

from collections.abc import Iterator

from ci_perf.errors import ExitCode
from ci_perf.features.rehearsal.findings import choose_exit_code
from ci_perf.features.rehearsal.plants import name_plant
from ci_perf.model.rehearsed import Attempt, PlantAnswer, RehearsedSuite, RehearsedWorkload
from ci_perf.report import units
from ci_perf.report.escape import Phrase, Sentence, Words
from ci_perf.report.page import environment
from ci_perf.report.page.pictures import Caption, Picture, Scale, Segment, Symbol
from ci_perf.report.phrases import fill
from ci_perf.report.tables import Block, Bullets, Page, Table

_PROVEN = {
    ExitCode.OK: "The gate fails when it should: everything planted was found, and A=A is clear.",
    ExitCode.REGRESSED: "The gate is not to be trusted yet.",
    ExitCode.NO_ANSWER: "Not everything has an answer.",
}
_QUIETER = (
    "A=A is red: the gate blames a change where there is none. End other programs on the machine, "
    "then `ci-perf doctor --deep` says what disturbs it and `ci-perf calibrate` which limit it can "
    "hold; rehearse again"
)
_LIMITS_NEXT = (
    "What passes, or is not seen, would pass in a pull request, too: change its limit or "
    "`gate` in suite.toml, or what the step does"
)
_TIME_NEXT = "Without an answer: give more time (--budget 1h), or a quieter machine"
_WIDTH, _TOP, _BOTTOM, _LEFT, _RIGHT = 480, 20.0, 200.0, 6.0, 94.0


def page(suite: RehearsedSuite, *, is_interrupted: bool) -> Page:
    """Say whether the gate is proven, a line and a row for each workload, and what comes next."""
    every = suite.workloads
    said = "Interrupted: this is what was found. " if is_interrupted else ""
    parts: list[Block] = [(Words(said + _PROVEN[choose_exit_code(suite)]),)]
    parts.append(Bullets([_tell(name, each) for name, each in every.items()]))
    rows = [_row(name, attempt) for name, each in every.items() for attempt in each.attempts]
    if rows:
        heading = ["workload", "planted", "found", "answer", "pairs", "took", "why"]
        parts.append(Table(heading, rows, left=["answer", "why"]))
    broken = [
        fill("{name}: this gate cannot fail: {why}", name=(name,), why=(Sentence(why),))
        for name, each in every.items()
        for why in each.broken
    ]
    return [*parts, *([Bullets(broken)] if broken else []), *_advise(suite)]


def _advise(suite: RehearsedSuite) -> Iterator[Phrase]:
    every = suite.workloads.values()
    answers = {attempt.answer for each in every for attempt in each.attempts}
    if any(each.alike == "red" for each in every):
        yield fill(_QUIETER)
    if answers & {PlantAnswer.PASSED, PlantAnswer.UNCHANGED} or any(each.broken for each in every):
        yield fill(_LIMITS_NEXT)
    if PlantAnswer.OPEN in answers or any(each.alike == "open" for each in every):
        yield fill(_TIME_NEXT)


def _tell(name: str, known: RehearsedWorkload) -> Phrase:
    """Write "train_step: 7.5 % found in 6 pairs (41 s), 15 % in 3 pairs (20 s); A=A clear"."""
    attempts = ", ".join(
        f"{name_plant(each.plant)} {each.answer.value} in "
        f"{units.render_count(each.pairs, 'pair')} ({units.duration(each.duration_s)})"
        for each in known.attempts
    )
    why: Phrase = (Words(": "), Sentence(known.why)) if known.why else ()
    between = "; " if attempts else "nothing planted; "
    said = Words(f"{attempts}{between}A=A {known.alike}")
    return fill("{name}: {said}{why}", name=(name,), said=(said,), why=why)


def _row(name: str, attempt: Attempt) -> list[str | Phrase]:
    change = "" if attempt.ratio is None else units.change(attempt.ratio)
    return [
        name,
        Words(name_plant(attempt.plant)),
        Words(change),
        Words(attempt.answer.value),
        Words(f"{attempt.pairs}"),
        units.duration(attempt.duration_s),
        (Sentence(attempt.why),),
    ]


def draw(suite: RehearsedSuite) -> str:
    """Return an SVG: work planted across, its change of the step time found up, and their line."""
    tried = [
        attempt
        for each in suite.workloads.values()
        for attempt in each.attempts
        if attempt.plant.kind == "work" and attempt.ratio is not None
    ]
    changes = [(each.ratio or 0.0) - 1 for each in tried]
    most = max([0.01, *changes, *(each.plant.share for each in tried)])
    across, up = Scale(0.0, most, _LEFT, _RIGHT), Scale(0.0, most, _BOTTOM, _TOP)
    end = units.limit(float(f"{most:.2g}"))
    marks = tuple(
        Symbol(
            x=across.place(each.plant.share),
            y=up.place(change),
            shape="head" if each.answer is PlantAnswer.FOUND else "base",
        )
        for each, change in zip(tried, changes, strict=True)
    )
    line = Segment(x1=_LEFT, y1=_BOTTOM, x2=_RIGHT, y2=_TOP, kind="axis")
    picture = Picture(
        height=240,
        label="work planted, across, and what of it was found, up",
        lines=(line,),
        marks=marks,
        captions=(
            Caption(x=_LEFT, y=_BOTTOM + 16, text="0 %"),
            Caption(x=_RIGHT, y=_BOTTOM + 16, text=f"planted {end}", anchor="end"),
            Caption(x=1, y=14, text=f"found {end}; a diamond is a red job, a circle is not"),
        ),
    )
    template = environment().get_template("picture.svg.jinja")
    return template.render(width=_WIDTH, picture=picture)
