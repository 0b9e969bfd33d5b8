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
import markupsafe
from markupsafe import Markup

from ci_perf.errors import ExitCode, UsageError
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
    cells,
    comparison_page,
    escape,
    headline,
    phrases,
    profiles,
    table_rows,
    tables,
)
from ci_perf.report.cells import RowWords
from ci_perf.report.escape import Command, Emphasis, Markdown, Sentence, Words
from ci_perf.report.page import canaries, launches, scales
from ci_perf.report.page.launches import Launches
from ci_perf.report.page.pictures import Picture
from ci_perf.report.tables import Bullets, Table

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
# A machine without a font for our emoji would show an empty box.
_ICON = re.compile(
    "(?:" + "|".join([*(mark for mark, _ in phrases.MARKS.values()), "🛑", "ℹ️"]) + ") "  # noqa: RUF001
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRow:
    """One row: its words, the rule that decided, and the launches behind it.

    ``tone`` is "worse", "better", "same" or "open", which chooses colour and ``shape``.
    """

    tone: str
    shape: str
    verdict: str
    workload: Sentence
    words: RowWords
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
    values = launches.collect(run, base)
    rows = table_rows.worst_first(comparison.rows)
    axis = scales.make_axis(rows)
    _, _, *gate = comparison_page.introduce(comparison)
    return styled(
        "page.html.jinja",
        axis=axis.ticks(),
        rows=[_make_row(row, axis, values) for row in rows if not table_rows.is_quiet(row)],
        folded=[_make_row(row, axis, values) for row in rows if table_rows.is_quiet(row)],
        folded_summary=(phrases.tally(filter(table_rows.is_quiet, rows)),),
        headline=headline.summarise(comparison),
        scope=headline.tell_scope(comparison),
        tally=(phrases.tally(rows),),
        tone=_TONES.get(comparison.exit_code, "open" if comparison.gate_changes else "same"),
        advice=[Bullets(comparison_page.list_lines(comparison)), *gate],
        explained=list(comparison_page.explain(comparison.rows)),
        more=list(profiles.fold(comparison.profiles, shown=_MOST_PROFILES)),
        canaries=Table(canaries.HEADING, canaries.list_rows(run) if run else []),
        origin=list(comparison_page.tell_origin(comparison)),
        validity=Words(comparison.validity.status.value),
        has_run=run is not None,
    )


# --- rows


def _tone(row: Row) -> str:
    severity = severity_of(row)
    if severity in _WORSE and row.gate:
        return "worse"
    if severity is Severity.IMPROVED:
        return "better"
    return "same" if table_rows.is_quiet(row) else "open"


def _make_row(
    row: Row, axis: scales.ChangeAxis, values: Mapping[tuple[str, str], Launches]
) -> PageRow:
    # A workload without a partner, such as a new one, shows its step time.
    metric = phrases.metric(row) or phrases.STEP_TIME
    every = values.get((row.workload, metric), Launches())
    drawn, tone = every.shown(), _tone(row)
    return PageRow(
        tone=tone,
        shape=_SHAPES[tone],
        verdict=severity_of(row).value,
        workload=Sentence(row.workload),
        words=cells.describe(row),
        output=escape.tail(row.output) if isinstance(row, Uncompared) else "",
        rule=axis.picture(row) if isinstance(row, Change) else None,
        drawn=launches.picture(drawn, metric),
        count=drawn.count,
        left_out=every.count - drawn.count,
        is_gating=not isinstance(row, Change) or row.gate,
    )


# --- the template


def _render_part(part: str) -> Markup:
    """Our own words as they are, everything else as code, cleaned and escaped."""
    if isinstance(part, Command):
        words = (Markup("<span>{}</span>").format(word) for word in part.split(" "))
        return Markup('<code class="command">{}</code>').format(Markup(" ").join(words))
    if isinstance(part, Emphasis):
        return Markup("")
    if isinstance(part, Markdown):
        said = str(markupsafe.escape(_SPACE_OF_UNIT.sub("\N{NO-BREAK SPACE}", _ICON.sub("", part))))
        said = _CODE.sub(r"<code>\1</code>", said).replace("\n", "<br>")
        return Markup(said)  # noqa: S704  escaped above
    text = phrases.plain((part,))
    return Markup("<code>{}</code>").format(text) if text else Markup("")


def _render_phrase(parts: str | Sequence[str]) -> Markup:
    return Markup("").join(map(_render_part, (parts,) if isinstance(parts, str) else parts))


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
    known.filters |= {
        "phrase": _render_phrase,
        "sentence": Sentence,
        "kind": lambda block: type(block).__name__,
        "visible": tables.clean_lines,
    }
    return known
