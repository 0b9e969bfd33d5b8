"""A comparison as one self-contained page of HTML: no script, no request, readable in any width.

The report, as everywhere, and pictures: of each row the interval that decided, and the launches.
"""

import base64
import functools
import hashlib
import re
from collections.abc import Sequence
from importlib import resources

import jinja2
import markupsafe
from markupsafe import Markup

from ci_perf.errors import ExitCode, UsageError
from ci_perf.model.comparison import Change, Comparison
from ci_perf.model.run import Run
from ci_perf.model.summary import Summary
from ci_perf.report import cells, comparison_page, headline, phrases, table_rows, tables
from ci_perf.report.escape import Command, Emphasis, Link, Markdown
from ci_perf.report.page import launches, scales
from ci_perf.report.page.launches import Launches
from ci_perf.report.sheet import make_sheet

# Of the whole page, by exit code: what fails no job is not red.
_TONES: dict[int, str] = {ExitCode.REGRESSED: "worse", ExitCode.NO_ANSWER: "open"}
_MOST_ROWS = 1_000
# A number and its unit stay on one line.
_SPACE_OF_UNIT = re.compile(r"(?<=\d) (?=[%a-zµ°])", re.IGNORECASE)


def render(comparison: Comparison, *, run: Run | None = None, base: Summary | None = None) -> str:
    """Return the page. Without its `run` the launches of the head and the pairs are missing.

    `base` holds the sessions of the baselines that the run was compared with. Raises UsageError: a
    run of another comparison.
    """
    if run is not None and run.id != comparison.head.run:
        raise UsageError(
            f"expected run {comparison.head.run or '(none)'}, which the comparison judges, found "
            f"run {run.id}; name the run.json that was written beside it"
        )
    values = launches.collect(run, base)
    sheet = make_sheet(comparison)
    changes = [(each, row) for each in sheet.findings if isinstance(row := each.row, Change)]
    axis = scales.make_axis(row for _, row in changes)
    pictures: dict[bool, list[dict[str, object]]] = {False: [], True: []}
    for finding, row in changes:
        every = values.get((row.workload, row.metric), Launches())
        picture: dict[str, object] = {
            "title": table_rows.name_row(finding),
            "change": cells.show_change(row),
            "rule": axis.draw(row),
            "drawn": launches.draw(every.shown(), row.metric),
            "count": every.shown().count,
            "left_out": every.count - every.shown().count,
        }
        pictures[finding.is_quiet].append(picture)
    title, scope, *gate = comparison_page.introduce(sheet)
    return render_styled(
        "page.html.jinja",
        axis=axis.draw_ticks(),
        pictures=pictures,
        headline=headline.summarise(sheet),
        tone=_TONES.get(comparison.exit_code, "open" if comparison.gate_changes else "same"),
        opening=[title, scope],
        report=[*gate, *comparison_page.continue_page(sheet, rows=_MOST_ROWS)],
        has_run=run is not None,
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
        said = markupsafe.escape(_SPACE_OF_UNIT.sub("\N{NO-BREAK SPACE}", part))
        return said.replace("\n", Markup("<br>"))
    text = phrases.plain((part,))
    shown = Markup("<code>{}</code>").format(text) if text else Markup("")
    if isinstance(part, Link) and part.address:
        return Markup('<a href="{}" rel="noreferrer">{}</a>').format(part.address, shown)
    return shown


def _render_phrase(parts: str | Sequence[str]) -> Markup:
    return Markup("").join(map(_render_part, (parts,) if isinstance(parts, str) else parts))


@functools.cache
def _style(name: str) -> str:
    return resources.files("ci_perf.report").joinpath(f"templates/{name}").read_text()


def render_styled(name: str, more_style: str = "", /, **values: object) -> str:
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
        "kind": lambda block: type(block).__name__,
        "visible": tables.clean_lines,
    }
    return known
