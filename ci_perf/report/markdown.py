"""A comparison as the Markdown that people read on a pull request."""

import functools
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass

import jinja2

from ci_perf.features.explain.report import HEADING, MOST_EXPLAINED, Explained, describe_rows
from ci_perf.model.comparison import Change, Comparison, Numerics, Row, Severity, Uncompared
from ci_perf.report import (
    advice,
    cells,
    escape,
    first_numbers,
    gate_words,
    headline,
    notices,
    phrases,
    profiles,
    provenance,
    sparklines,
    table_rows,
    tables,
)
from ci_perf.report.cells import TableLine
from ci_perf.report.escape import Command, Markdown, Sentence, Words
from ci_perf.report.phrases import Phrase

# GitHub's limit for a comment is 65,536, of characters or bytes depending on whom one asks;
# whoever publishes the report adds a few lines.
COMMENT_BYTES = 60_000
# Of the JSON in the report. History: 1 = first published form (0.1.0).
SCHEMA = "ci-perf/report/1"
# How many rows the table and the folded one may show, and how many explanations: the first that
# keeps the report within its bytes is taken. What is folded goes first.
_SHOWN = (
    (1_000, 1_000, MOST_EXPLAINED),
    (1_000, 100, MOST_EXPLAINED),
    (1_000, 10, MOST_EXPLAINED),
    (100, 10, 5),
    (30, 3, 3),
    (10, 3, 3),
    (3, 3, 1),
    (3, 3, 0),
)
# Rows in the JSON for programs; `ci-perf compare --format json` has all of them.
_SHOWN_TO_PROGRAMS = 100
_FIRST = Words("Measured for the first time:")
_BOLD = frozenset({Severity.REGRESSED, Severity.NUMERICS_CHANGED})
# Spaces between a number and its unit, where a line must not break.
_UNIT = re.compile(r"(?<=[0-9]) (?=%|pairs?\b|sessions?\b)")
# In the cell of a change a line may break before a bracket, and nowhere else.
_UNBROKEN_SPACE = re.compile(r" (?![\[(])")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Table:
    """Cells to loop over, and a sentence about the rows that are left out."""

    cells: list[tuple[Markdown, ...]]
    left_out: Markdown


@dataclass(frozen=True, slots=True, kw_only=True)
class _Explained:
    """An explanation: a line that begins in bold, cells to loop over, and a note."""

    title: Markdown
    lines: list[tuple[Markdown, ...]]
    note: Markdown


@dataclass(frozen=True, slots=True, kw_only=True)
class _Failure:
    """A workload that failed, folded."""

    summary: Markdown
    details: Markdown
    output: Markdown


def render(comparison: Comparison, *, max_bytes: int = COMMENT_BYTES) -> str:
    """Show the verdict, what to do, what changed; the rest folded. Cut at whole rows to fit."""
    text = ""
    for shown, folded, explained in _SHOWN:
        text = _render(comparison, shown, folded, explained)
        if len(text.encode()) <= max_bytes:
            break
    return text


def opening(comparison: Comparison) -> Markdown:
    """Return what every report begins with: the headline, the counts, what the gate becomes."""
    head, counted = headline.of(comparison), headline.counts(comparison)
    said = [f"### {phrase(_with_units(head))}\n\n{phrase(counted)}"]
    if comparison.gate_changes:
        said.append(f"\n**{gate_words.TITLE}**\n")
        said += [f"- {phrase(line)}" for line in gate_words.lines(comparison.gate_changes)]
    return Markdown("\n".join(said))


def phrase(parts: Phrase) -> Markdown:
    """Make Markdown of a phrase; its foreign parts become code spans."""
    return Markdown("".join(_finalize(part) for part in parts))


def _render(comparison: Comparison, shown: int, folded: int, explained: int) -> str:
    compared = [row for row in comparison.rows if not first_numbers.is_first(row)]
    table, quiet = table_rows.changed(compared), table_rows.quiet(compared)
    first = first_numbers.from_comparison(comparison, shown=shown)
    failed = table_rows.failed(table_rows.worst_first(comparison.rows))
    validity = notices.validity(comparison)
    return _template().render(
        opening=opening(comparison),
        has_gate_changes=bool(comparison.gate_changes),
        warnings=[phrase(part) for part in (*notices.of(comparison), *validity[:1])],
        reasons=[phrase(part) for part in validity[1:]],
        steps=[phrase(part) for part in advice.next_steps(comparison)],
        heading=cells.HEADING,
        changed=_table(table, shown),
        first=Markdown(tables.markdown([(_FIRST,), first])) if first else "",
        explained=list(map(_explained, describe_rows(comparison.rows, most=explained))),
        explained_heading=HEADING,
        failures=[_failure(row) for row in failed[:shown]],
        failures_left_out=_left_out(shown, len(failed), "failed workloads"),
        quiet=_table(quiet, folded),
        quiet_summary=_html(table_rows.quiet_summary(comparison.rows)),
        legend=[phrase(part) for part in phrases.legend(comparison.rows)],
        profiles=_profiles(comparison, folded),
        profiles_summary=_html(profiles.summary(comparison.profiles)),
        sparklines=_sparklines(comparison, folded),
        sparklines_summary=_html(sparklines.SUMMARY),
        environment=[tuple(map(phrase, row)) for row in provenance.environment(comparison)],
        interleaving=phrase(provenance.interleaving(comparison)),
        interleaving_notes=[phrase(part) for part in provenance.interleaving_notes(comparison)],
        environment_summary=_html(provenance.environment_summary(comparison)),
        data=escape.fence(
            json_summary(comparison, shown=min(folded, _SHOWN_TO_PROGRAMS)), info="json"
        ),
        footer=phrase(provenance.footer(comparison)),
    )


@functools.cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("ci_perf.report"),
        autoescape=False,  # noqa: S701  HTML escapes do not help in Markdown; `finalize` escapes
        finalize=_finalize,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template("report.md.jinja")


def _finalize(value: object) -> Markdown:
    """Escape everything that is not Markdown already: a template cannot forget to."""
    if isinstance(value, Markdown):
        return value
    if isinstance(value, Command):
        return escape.command(value)
    if isinstance(value, Sentence):
        return escape.sentence(value)
    return escape.code(str(value))


def _html(parts: Phrase) -> Markdown:
    """Make a phrase fit for `<summary>`, where Markdown is not read."""
    shown = (part if isinstance(part, Markdown) else escape.html_code(part) for part in parts)
    return Markdown("".join(shown))


def _table(lines: list[TableLine], shown: int) -> _Table:
    left_out = _left_out(shown, len(lines), "rows")
    return _Table(cells=[_cells(line) for line in lines[:shown]], left_out=left_out)


def _left_out(shown: int, every: int, what: str) -> Markdown:
    if shown >= every:
        return Markdown("")
    counted = Words(f"{shown:,} of {every:,} {what} shown: ")
    return phrase((counted, phrases.ALL_ROWS, Words(" shows all.")))


def _cells(line: TableLine) -> tuple[Markdown, ...]:
    mark, name, values, change, limit, evidence = cells.of(line)
    bold = "**" if line.first.severity in _BOLD else ""
    return (
        _below(mark),
        _below(name),
        Markdown(_below(values).replace(" ", "\N{NO-BREAK SPACE}")),
        _below((Words(bold), *part, Words(bold)) for part in map(_unbroken, change)),
        _below(map(_unbroken, limit)),
        _below(map(_with_units, evidence)),
    )


def _below(parts: Iterable[Phrase]) -> Markdown:
    """Put the parts of a cell below each other."""
    return Markdown("<br>".join(map(phrase, parts)))


def _with_units(parts: Phrase) -> Phrase:
    """Keep each number of our own sentences beside its unit, also that of a count."""
    return tuple(
        Words(_UNIT.sub("\N{NO-BREAK SPACE}", part)) if isinstance(part, Words) else part
        for part in parts
    )


def _unbroken(parts: Phrase) -> Phrase:
    """Keep a number and its unit on one line of a narrow cell."""
    return tuple(Words(_UNBROKEN_SPACE.sub("\N{NO-BREAK SPACE}", part)) for part in parts)


def _failure(row: Uncompared) -> _Failure:
    given = ", ".join(f"{name}={value}" for name, value in sorted(row.parameters.items()))
    parameters = (Words(", parameters "), given) if given else ()
    return _Failure(
        summary=_html(
            (
                phrases.ICON[Severity.FAILED],
                Words(" "),
                row.workload,
                Words(" failed: "),
                row.note,
            )
        ),
        details=phrase(
            (
                Words("Phase "),
                row.phase.value if row.phase else "unknown",
                *parameters,
                Words(". "),
                *phrases.exhausted(row),
                Words(" Last output:" if row.exhausted else "Last output:"),
            )
        ),
        output=escape.fenced(row.output or "(it printed nothing)"),
    )


def _explained(explained: Explained) -> _Explained:
    return _Explained(
        title=Markdown(f"**{phrase(explained.title)}**{phrase(explained.rest)}"),
        lines=[tuple(map(phrase, cells)) for cells in explained.lines],
        note=phrase(explained.note),
    )


def _profiles(comparison: Comparison, shown: int) -> Markdown:
    return Markdown(tables.markdown(profiles.page(comparison.profiles, shown=shown)))


def _sparklines(comparison: Comparison, shown: int) -> Markdown:
    page = sparklines.page(comparison.rows, shown=shown)
    return Markdown(tables.markdown(page) if page else "")


# --- JSON for programs that have only the report


def json_summary(comparison: Comparison, *, shown: int) -> str:
    """Give the verdict and the worst rows, one per line. ASCII only, so nothing in it is hidden."""
    head = {
        "schema": SCHEMA,
        "verdict": comparison.verdict.value,
        "exit_code": comparison.exit_code,
        "suite": comparison.suite,
        "validity": comparison.validity.status.value,
        "base_commit": comparison.base.source.commit,
        "head_commit": comparison.head.source.commit,
        "rows_left_out": max(0, len(comparison.rows) - shown),
    }
    worst = table_rows.worst_first(comparison.rows)
    lines = ",\n".join(json.dumps(_row(row)) for row in worst[:shown])
    text = f'{json.dumps(head)[:-1]}, "rows": [\n{lines}\n]}}'
    # Inside a string the same for JSON; on a printed line GitHub's runner would obey it.
    return text.replace("##[", "##\\u005b")


def _row(row: Row) -> dict[str, object]:
    """Keep what a bot needs; a whole workload has an empty metric and no numbers."""
    said: dict[str, object] = {
        "workload": row.workload,
        "metric": str(phrases.metric(row)),
        "verdict": row.verdict.value,
        "code": row.code.value,
    }
    if isinstance(row, Numerics):
        said |= {
            "gate": row.gate,
            "difference": _rounded(row.difference),
            "limit": _rounded(row.tolerance),
        }
    if isinstance(row, Change):
        low, high = (row.interval.low, row.interval.high) if row.interval else (None, None)
        said |= {
            "gate": row.gate,
            "ratio": _rounded(row.ratio),
            "low": _rounded(low),
            "high": _rounded(high),
            "limit": _rounded(row.limit),
            "smallest_detectable": _rounded(row.smallest_detectable),
            "pairs": row.pairs,
            "drift": _rounded(row.drift),
        }
    return said


def _rounded(number: float | None) -> float | None:
    """Six digits: far below any noise."""
    return None if number is None else float(f"{number:.6g}")
