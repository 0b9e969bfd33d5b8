"""Makes foreign text harmless: whatever a run says is shown and never obeyed.

Names, notes, commits and device names come from code that nobody has reviewed yet. Inside a code
span or a fence GitHub interprets nothing: no mention, no link, no tag, no further table cell.
"""

import html
import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Self

# Enough for every honest name; longer ones push the numbers out of sight.
MAX_CHARS = 80
# A note is a sentence; longer ones are cut, and stand whole in run.json.
MAX_SENTENCE_CHARS = 500
MAX_FENCED_LINES = 30
MAX_FENCED_BYTES = 3_000
_MAX_QUOTED_LINES = 12
_FOREIGN = ("/site-packages/", "/ci_perf/measuring/")

# A spreadsheet takes a cell that begins so for a formula, and may send it to the network.
_FORMULA = ("=", "+", "-", "@")
# What a cell of a spreadsheet holds.
_MAX_CELL_CHARS = 32_000

# What Python calls printable, and no font shows: the code points that Unicode lets every program
# ignore (Default_Ignorable_Code_Point in DerivedCoreProperties.txt), and two that are blank.
_INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0"
    "\U0001d159\U000e0100-\U000e01ef]"
)
# Vietnamese writes two on a letter; sixty reach across the lines above and below.
_MAX_MARKS = 2
_MARKS = {"Mn", "Mc", "Me"}
_BACKTICKS = re.compile(r"`+")
# GitHub's runner obeys "::command::" at the start of a printed line and "##[command]" anywhere.
_WORKFLOW_COMMAND = re.compile(r"(?<!\S):{2,}|##\[")


# Cells and parts of sentences: our own words, or foreign text, which is shown and never obeyed.
Phrase = tuple[str, ...]


class Markdown(str):
    """Text that is already Markdown. The templates show every other string as a code span."""

    __slots__ = ()


class Words(Markdown):
    """Our own words: they read the same as Markdown and as plain text."""

    __slots__ = ()


class Emphasis(Words):
    """The sign around words that Markdown shows in bold; other forms show nothing of it."""

    __slots__ = ()


BOLD = Emphasis("**")


class Sentence(str):
    """A foreign sentence: shown like a name, but with a higher limit."""

    __slots__ = ()


class Command(str):
    """A command line to copy: ours, with its foreign words quoted. Shown whole."""

    __slots__ = ()


class Link(str):
    """A foreign word that leads to `address` on a page; to nothing where that is empty."""

    __slots__ = ("address",)
    address: str

    def __new__(cls, text: str, address: str) -> Self:
        """Take both."""
        link = super().__new__(cls, text)
        link.address = address
        return link


def clean(text: str, *, limit: int = MAX_CHARS) -> str:
    """Return one line without invisible characters, at most `limit` characters long."""
    # Not printable: controls, bidi and zero-width marks, lone surrogates, odd spaces.
    printable = "".join(c if c.isprintable() else " " for c in text)
    line = _disarm(" ".join(_without_invisible(printable).split()))
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def spreadsheet_cell(text: str) -> str:
    """Return one line of text, after the mark that tells a spreadsheet "this is text"."""
    line = clean(text, limit=_MAX_CELL_CHARS)
    return f"'{line}" if line.startswith(_FORMULA) else line


def code(text: str, *, limit: int = MAX_CHARS) -> Markdown:
    """Show `text` as one code span that is safe in a table cell.

    A pipe is written with a backslash, which tables remove and other places show.
    """
    line = clean(text, limit=limit)
    if not line:
        return Markdown("")
    fence = "`" * (_longest_run(line) + 1)
    pad = " " if line[0] == "`" or line[-1] == "`" else ""
    return Markdown(f"{fence}{pad}{line}{pad}{fence}".replace("|", "\\|"))


def command(text: Command) -> Markdown:
    """Show a whole command; the foreign words in it were cleaned when it was built."""
    return code(text, limit=len(text) + 1)


def sentence(text: str) -> Markdown:
    """Show a note as a code span with the limit of a sentence."""
    return code(text, limit=MAX_SENTENCE_CHARS)


def html_code(text: str, *, limit: int = MAX_CHARS) -> Markdown:
    """Like `code`, for the inside of `<summary>`, where Markdown is not read."""
    return Markdown(f"<code>{html.escape(clean(text, limit=limit))}</code>")


def fence(text: str, *, info: str) -> Markdown:
    """Put a fence around `text` that nothing inside can close."""
    mark = "`" * max(3, _longest_run(text) + 1)
    return Markdown(f"{mark}{info}\n{text}\n{mark}")


def tail(text: str) -> str:
    """Keep the last lines within the caps, without control characters; says what was cut."""
    lines = _last_lines(text, MAX_FENCED_LINES)
    while lines and not visible(lines[-1]):
        lines.pop()
    kept = [visible(line) for line in lines[-MAX_FENCED_LINES:]]
    while len(kept) > 1 and _size(kept) > MAX_FENCED_BYTES:
        kept = kept[1:]
    if _size(kept) > MAX_FENCED_BYTES:
        kept = ["…" + kept[0].encode()[-MAX_FENCED_BYTES:].decode(errors="ignore")]
    cut = len(lines) - len(kept)
    return "\n".join(([f"… {cut} earlier lines"] if cut else []) + kept)


def quote_lines(text: str) -> list[str]:
    """Set the last lines of foreign text apart, for a log."""
    lines = _last_lines(text, _MAX_QUOTED_LINES)
    return [visible(f"  | {line}") for line in lines[-_MAX_QUOTED_LINES:]]


def _last_lines(text: str, most: int) -> list[str]:
    """Return the lines up to the last one that matters, of which people see `most`.

    Of a crash these are the first ones: faulthandler puts the innermost call first, and a list of
    all extension modules last.
    """
    lines = [line for line in text.splitlines() if not line.startswith("Extension modules:")]
    lines = list(_drop_foreign_frames(lines, most))
    crashes = (place for place, line in enumerate(lines) if line.startswith("Fatal Python error"))
    return lines[: next(crashes, len(lines)) + most]


def _drop_foreign_frames(lines: Sequence[str], most: int) -> Iterator[str]:
    """Leave frames of installed packages, and of ours, out of a long traceback: the user's remain.

    A frame is its line and the code below it, which is indented further.
    """
    if len(lines) <= most:
        yield from lines
        return
    is_foreign = False
    for line in lines:
        if line.startswith('  File "'):
            is_foreign = any(part in line for part in _FOREIGN)
        elif not line.startswith("    "):
            is_foreign = False
        if not is_foreign:
            yield line


def visible(line: str) -> str:
    """Show one line as a terminal would end up showing it: tabs widened, the unseen dropped.

    It commands no CI: GitHub obeys `::command::` at the start of a line and `##[command]` anywhere.
    """
    shown = "".join(c for c in line.expandtabs(4) if c.isprintable())
    return _disarm(_without_invisible(shown).rstrip())


def _without_invisible(text: str) -> str:
    """Drop what prints as nothing, and of the marks on a letter all but the first two."""
    if text.isascii():
        return text
    kept: list[str] = []
    marks = 0
    for character in _INVISIBLE.sub("", text):
        marks = marks + 1 if unicodedata.category(character) in _MARKS else 0
        if marks <= _MAX_MARKS:
            kept.append(character)
    return "".join(kept)


def _disarm(line: str) -> str:
    return _WORKFLOW_COMMAND.sub(lambda match: " ".join(match[0]), line)


def _size(lines: list[str]) -> int:
    return sum(len(line.encode()) + 1 for line in lines)


def _longest_run(text: str) -> int:
    return max((len(run) for run in _BACKTICKS.findall(text)), default=0)
