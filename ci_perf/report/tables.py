"""A page of paragraphs, lists and tables, and as Markdown.

Every report is such a page; page/ shows it as HTML, and terminal_page on a terminal.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ci_perf.report import escape
from ci_perf.report.escape import Command, Markdown, Phrase, Sentence


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A phrase that stands out, or stands back."""

    words: Phrase
    style: Literal["headline", "title", "small"]


@dataclass(frozen=True, slots=True)
class Bullets:
    """Phrases below each other."""

    lines: Sequence[Phrase]


@dataclass(frozen=True, slots=True)
class Table:
    """A heading, and rows of as many cells; the first column is a name, `left` others are words.

    A cell is one text, or a phrase of several. ``styles`` are those of the rows on a terminal.
    """

    heading: Sequence[str]
    rows: Sequence[Sequence[str | Phrase]]
    left: Sequence[str] = ()
    styles: Sequence[str] = ()

    def is_left(self, place: int) -> bool:
        """Whether a column has names or words, not numbers."""
        return not place or self.heading[place] in self.left


@dataclass(frozen=True, slots=True)
class Listing:
    """Lines that stand below each other as they are."""

    text: str
    language: str = "text"


@dataclass(frozen=True, slots=True)
class Fold:
    """Blocks below a line that opens them; a terminal shows those that are open."""

    summary: Phrase
    blocks: "Page"
    is_open: bool = False


Block = Phrase | Paragraph | Bullets | Table | Listing | Fold
Page = Sequence[Block]


# --- Markdown


def markdown(page: Page) -> str:
    """Render for GitHub; the first sentence stands out."""
    first, *others = page
    if not isinstance(first, Paragraph | Bullets | Table | Listing | Fold):
        first = Paragraph(first, "title")
    return join_markdown([first, *others])


def join_markdown(page: Page) -> str:
    """Render for GitHub, each block as it is."""
    return "\n\n".join(map(_render_markdown, page)) + "\n"


def _render_markdown(block: Block) -> str:
    match block:
        case Paragraph():
            before, after = {
                "headline": ("### ", ""),
                "title": ("**", "**"),
                "small": ("<sub>", "</sub>"),
            }[block.style]
            return f"{before}{escape_phrase(block.words)}{after}"
        case Bullets():
            return "\n".join(f"- {escape_phrase(line)}" for line in block.lines)
        case Table():
            return _render_markdown_table(block)
        case Listing():
            return escape.fence(clean_lines(block), info=block.language)
        case Fold():
            # Nothing reads Markdown in a summary.
            summary = "".join(
                part if isinstance(part, Markdown) else escape.html_code(part)
                for part in block.summary
            )
            inner = "\n\n".join(map(_render_markdown, block.blocks))
            return f"<details><summary>{summary}</summary>\n\n{inner}\n\n</details>"
        case _:
            return escape_phrase(block)


def escape_phrase(phrase: Phrase) -> Markdown:
    """Make Markdown of a phrase; its foreign parts become code spans."""
    return Markdown("".join(map(_escape_part, phrase)))


def _escape_part(text: str) -> Markdown:
    if isinstance(text, Markdown):
        return text
    if isinstance(text, Command):
        return escape.command(text)
    return escape.sentence(text) if isinstance(text, Sentence) else escape.code(text)


def _render_markdown_table(table: Table) -> str:
    places = range(len(table.heading))
    lines = [
        table.heading,
        [":--" if table.is_left(place) else "--:" for place in places],
        *([escape_phrase(as_phrase(cell)).replace("\n", "<br>") for cell in r] for r in table.rows),
    ]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def clean_lines(listing: Listing) -> str:
    """Return the lines as a terminal would end up showing them."""
    return "\n".join(map(escape.visible, listing.text.splitlines()))


def as_phrase(cell: str | Phrase) -> Phrase:
    """Return a cell as a phrase."""
    return (cell,) if isinstance(cell, str) else cell
