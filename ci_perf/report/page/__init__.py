"""A comparison as one self-contained page of HTML: no script, no request, readable in any width.

Everything drawn comes from the comparison that decided, and from the run and the baselines that it
was made of.
"""

import base64
import functools
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources

import jinja2
from markupsafe import Markup, escape

from ci_perf.errors import ExitCode, UsageError
from ci_perf.features.explain.report import HEADING, describe_rows
from ci_perf.features.explain.waits import list_waits
from ci_perf.model.comparison import (
    Change,
    Comparison,
    Row,
    Severity,
    Uncompared,
    severity_of,
)
from ci_perf.model.run import Run
from ci_perf.model.summary import Summary
from ci_perf.report import (
    advice,
    cells,
    gate_words,
    headline,
    notices,
    phrases,
    profiles,
    provenance,
    table_rows,
    units,
)
from ci_perf.report.escape import (
    MAX_SENTENCE_CHARS,
    Command,
    Markdown,
    Sentence,
    Words,
    clean,
    tail,
)
from ci_perf.report.page import launches, losses, machine, scales
from ci_perf.report.page.launches import Launches
from ci_perf.report.page.machine import CanaryLine, Strip
from ci_perf.report.page.pictures import Picture
from ci_perf.report.phrases import Phrase
from ci_perf.report.tables import Listing, Page, Table

_WORSE = frozenset({Severity.FAILED, Severity.NUMERICS_CHANGED, Severity.REGRESSED})
# Of the whole page, by exit code: what fails no job is not red.
_TONES: dict[int, str] = {ExitCode.REGRESSED: "worse", ExitCode.NO_ANSWER: "open"}
# A shape beside each colour, for who sees no colours.
_SHAPES = {"worse": "▲", "better": "▼", "same": "●", "open": "◆"}
# Rows of a table of epochs, parts of steps, GPUs or compilation.
_MOST_PROFILES = 1_000
# Code in our own sentences.
_CODE = re.compile("`([^`]+)`")
# A number and its unit stay on one line.
_SPACE_OF_UNIT = re.compile(r"(?<=\d) (?=[%a-zµ°])", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRow:
    """One row: its words, the rule that decided, and the launches behind it.

    ``tone`` is "worse", "better", "same" or "open", which chooses colour and ``shape``.
    """

    tone: str
    shape: str
    verdict: str
    workload: Sentence
    title: str
    values: str
    change: str
    why: tuple[str, ...]
    output: str
    rule: Picture | None
    drawn: Picture | None
    count: int
    left_out: int
    is_gating: bool


def render(comparison: Comparison, *, run: Run | None = None, base: Summary | None = None) -> str:
    """Return the page. Without its `run` the launches of the head, pairs and machine are missing.

    `base` holds the sessions of the baselines that the run was compared with. Raises UsageError: a
    run of another comparison.
    """
    if run is not None and run.id != comparison.head.run:
        raise UsageError(
            f"expected run {comparison.head.run or '(none)'}, of which the comparison is, found "
            f"run {run.id}; name the run.json that was written beside it"
        )
    values = launches.of(run, base)
    rows = table_rows.worst_first(comparison.rows)
    axis = scales.of(rows)
    return styled(
        "page.html.jinja",
        axis=axis.ticks(),
        rows=[_row(row, axis, values) for row in rows if not table_rows.is_quiet(row)],
        folded=[_row(row, axis, values) for row in rows if table_rows.is_quiet(row)],
        folded_summary=table_rows.quiet_summary(comparison.rows),
        headline=_without_icon(headline.of(comparison)),
        counts=headline.counts(comparison),
        tone=_TONES.get(comparison.exit_code, "open" if comparison.gate_changes else "same"),
        gate_title=gate_words.TITLE,
        gate=gate_words.lines(comparison.gate_changes),
        footer=provenance.footer(comparison),
        machine=provenance.machine(comparison.head.machine),
        steps=advice.next_steps(comparison),
        warnings=[
            _without_icon(notice)
            for notice in (*notices.of(comparison), *notices.validity(comparison))
        ],
        explained=describe_rows(comparison.rows),
        explained_heading=HEADING,
        losses=losses.curves(rows),
        more_summary=profiles.summary(comparison.profiles),
        more=parts(profiles.page(comparison.profiles, shown=_MOST_PROFILES)),
        strips=machine.strips(run) if run else list[Strip](),
        canaries=machine.canaries(run) if run else list[CanaryLine](),
        waits=list(list_waits(run)) if run else [],
        environment=provenance.environment(comparison),
        validity=Words(comparison.validity.status.value),
        interleaving=[
            phrase
            for phrase in (
                provenance.interleaving(comparison),
                *provenance.interleaving_notes(comparison),
            )
            if phrase
        ],
        has_run=run is not None,
    )


def parts(page: Page) -> list[dict[str, object]]:
    """Return the parts of a page of sentences and tables, as the templates show them."""
    shown: list[dict[str, object]] = []
    for part, following in zip(page, [*page[1:], None], strict=True):
        if isinstance(part, Table):
            shown.append({"kind": "table", "table": part})
        elif isinstance(part, Listing):
            shown.append({"kind": "listing", "text": part.text})
        else:
            kind = "heading" if isinstance(following, Table) else "sentence"
            shown.append({"kind": kind, "phrase": part})
    return shown


def _without_icon(phrase: Phrase) -> Phrase:
    """Drop our emoji in front: a machine without such a font would show an empty box."""
    first, *rest = phrase
    if not isinstance(first, Markdown):
        return phrase
    icons = "".join(phrases.ICON.values()) + "\N{INFORMATION SOURCE}\N{VARIATION SELECTOR-16} "
    return (Markdown(first.lstrip(icons)), *rest)


# --- rows


def _tone(row: Row) -> str:
    severity = severity_of(row)
    if severity in _WORSE and row.gate:
        return "worse"
    if severity is Severity.IMPROVED:
        return "better"
    return "same" if table_rows.is_quiet(row) else "open"


def _row(row: Row, axis: scales.ChangeAxis, values: Mapping[tuple[str, str], Launches]) -> PageRow:
    shown = cells.shown(row)
    # A workload without a partner, such as a new one, shows its step time.
    metric = phrases.metric(row) or phrases.STEP_TIME
    of_row = values.get((row.workload, metric))
    shown_launches = of_row.shown() if of_row else Launches()
    tone = _tone(row)
    return PageRow(
        tone=tone,
        shape=_SHAPES[tone],
        verdict=shown.severity.value,
        workload=Sentence(shown.workload),
        title=shown.metric,
        values=""
        if shown.base == shown.head == units.NOTHING
        else units.both(shown.base, shown.head),
        change=shown.change if shown.change != units.NOTHING else "",
        why=tuple(
            part
            for part in (
                _limit(shown.limit),
                shown.evidence,
                shown.remark,
                Sentence(shown.note),
            )
            if part
        ),
        output=tail(row.output) if isinstance(row, Uncompared) else "",
        rule=axis.picture(row) if isinstance(row, Change) else None,
        drawn=launches.picture(shown_launches, metric),
        count=shown_launches.count,
        left_out=(of_row.count if of_row else 0) - shown_launches.count,
        is_gating=not isinstance(row, Change) or row.gate,
    )


def _limit(limit: Words) -> Words:
    """Name what the number is."""
    if limit == units.NOTHING:
        return Words("")
    return limit if limit.startswith("exact") else Words(f"limit {limit}")


# --- the template


def _html(part: str) -> Markup:
    """Our own words as they are, everything else as code, cleaned and escaped."""
    if isinstance(part, Command):
        words = (Markup("<span>{}</span>").format(word) for word in part.split(" "))
        return Markup('<code class="command">{}</code>').format(Markup(" ").join(words))
    if isinstance(part, Markdown):
        said = str(escape(_SPACE_OF_UNIT.sub("\N{NO-BREAK SPACE}", part)))
        return Markup(_CODE.sub(r"<code>\1</code>", said))  # noqa: S704  escaped above
    limit = MAX_SENTENCE_CHARS if isinstance(part, Sentence) else None
    text = clean(part) if limit is None else clean(part, limit=limit)
    return Markup("<code>{}</code>").format(text) if text else Markup("")


def _phrase(parts: str | Sequence[str]) -> Markup:
    every = (parts,) if isinstance(parts, str) else parts
    return Markup("").join(map(_html, every))


@functools.cache
def _style(name: str) -> str:
    return resources.files("ci_perf.report").joinpath(f"templates/{name}").read_text()


def styled(name: str, more_style: str = "", /, **values: object) -> str:
    """Render a template of a whole page, whose style sheet is the only one that it allows.

    `more_style` is another file of ours, which is added to it.
    """
    style = _style("page.css") + (_style(more_style) if more_style else "")
    digest = hashlib.sha256(style.encode()).digest()
    return (
        environment()
        .get_template(name)
        .render(
            style=Markup(style),  # noqa: S704  our own file
            style_hash=base64.b64encode(digest).decode(),
            **values,
        )
    )


@functools.cache
def environment() -> jinja2.Environment:
    """Return what knows our templates, and escapes all that they show."""
    known = jinja2.Environment(
        loader=jinja2.PackageLoader("ci_perf.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
        lstrip_blocks=True,
    )
    known.filters["phrase"] = _phrase
    return known
