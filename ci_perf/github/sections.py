"""The body of the comment: one section per machine, each replaced by its own job only. Pure."""

import dataclasses
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

# GitHub's limit is 65,536, of characters or bytes depending on whom one asks.
MAX_BYTES = 65_000
# History: 1 = first published form.
_VERSION = "v1"
# The beginning of every marker in a comment of ours; no foreign text may contain it.
_OURS = "<!-- ci-perf:"
_BEGIN = re.compile(
    r"^<!-- ci-perf:section name=(?P<name>[A-Za-z0-9_.+-]+) run=(?P<run>[0-9]{1,18}) "
    r"attempt=(?P<attempt>[0-9]{1,18}) -->\n",
    re.MULTILINE,
)
_RECORD = re.compile(r"^<!-- ci-perf:record (?P<record>[A-Za-z0-9_=-]+) -->\n")
_REST = "<!-- ci-perf:rest -->\n"
_END = "<!-- ci-perf:end -->\n"
_NOT_A_NAME = re.compile(r"[^A-Za-z0-9_.+-]+")
_NOT_A_KEY = re.compile(r"[^A-Za-z0-9_.:/=+-]+")
_MAX_NAME_CHARS = 100
# For the headline over several machines, and the sentence that counts those that are left out.
_NOTE_BYTES = 600
# How the headline of a section begins (report/headline.py), the worst first; the order decides the
# headline over all of them.
_WORDS = ("❌ Act", "❓ Unknown", "✅ Pass")
_MAX_NAMED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """The report of one machine: always `brief`, and `rest` where it fits.

    A section of a later run, or a later attempt of it, is newer. `record` is a word that nobody
    sees: what our next run has to know.
    """

    name: str
    run: int
    attempt: int
    brief: str
    rest: str
    record: str = ""

    @property
    def age(self) -> tuple[int, int]:
        """Order sections of the same name; the largest is the newest."""
        return (self.run, self.attempt)


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A section of unknown length: `rest` renders what fits into a number of bytes.

    `record` makes the new record of the one that stands there, empty where there is none.
    """

    name: str
    run: int
    attempt: int
    brief: str
    rest: Callable[[int], str]
    record: Callable[[str], str] = str

    @property
    def age(self) -> tuple[int, int]:
        """Order it like the section that it becomes."""
        return (self.run, self.attempt)

    def is_in(self, sections: Iterable[Section]) -> bool:
        """Whether it is among `sections`, however much of its rest other jobs have left there."""
        shown = _drafted(self, "").brief
        return any((s.name, s.age, s.brief) == (self.name, self.age, shown) for s in sections)


def marker(key: str) -> str:
    """Return the first line of our comment. The key tells two comments of ours apart."""
    return f"{_OURS}{_VERSION} key={_word(key, _NOT_A_KEY)} -->"


def is_ours(body: str, key: str) -> bool:
    """Whether a comment begins with our marker; its author is checked elsewhere."""
    return _unix(body).startswith(marker(key) + "\n")


def name(text: str) -> str:
    """Turn any text into the name of a section."""
    return _word(text, _NOT_A_NAME)


def parse(body: str, key: str) -> tuple[Section, ...]:
    """Take a comment apart. A damaged section is left out, and comes back with its next run."""
    if not is_ours(body, key):
        return ()
    text = _unix(body)
    starts = list(_BEGIN.finditer(text))
    if not starts:
        return ()  # somebody has removed its text
    ends = [begin.start() for begin in starts[1:]] + [len(text)]
    contents = [text[begin.end() : end] for begin, end in zip(starts, ends, strict=True)]
    sections = map(_section, starts, contents)
    return newest(section for section in sections if section is not None)


def newest(sections: Iterable[Section]) -> tuple[Section, ...]:
    """Keep the newest section of each name, in the order of names."""
    kept: dict[str, Section] = {}
    for section in sections:
        if section.name not in kept or section.age >= kept[section.name].age:
            kept[section.name] = section
    return tuple(kept[each] for each in sorted(kept))


def compose(
    key: str, others: Iterable[Section], own: Sequence[Draft], *, max_bytes: int = MAX_BYTES
) -> str:
    """Put `own` among the sections of other machines, within `max_bytes`.

    `others` are all that stand there, older ones of the same machines included.

    Each machine may have an even share, and what others leave of theirs. Nobody can render the
    section of another machine again: where it is too long, only its brief part stays.
    """
    others = list(others)
    kept = [section for section in others if section.name not in {draft.name for draft in own}]
    notes = _NOTE_BYTES if len(kept) + len(own) > 1 else 0
    total = max_bytes - len(f"{marker(key)}\n".encode()) - notes
    own = _recorded(own, others)
    brief = _size(_drafted(draft, "") for draft in own)
    shown = _shortened(kept, total - max(brief, total * len(own) // (len(kept) + len(own))))
    drafted = _rendered(own, total - _size(shown))
    every = sorted([*shown, *drafted], key=lambda section: section.name)
    text = _headline(every) + "".join(map(_text, every))
    return f"{marker(key)}\n{text}{_left_out(len(every), len(kept) + len(own))}"


def _headline(sections: Sequence[Section]) -> str:
    """Say in one line what the sections of several machines say together."""
    if len(sections) < 2:
        return ""
    said = {section.name: _word_of(section) for section in sections}
    worst = min(said.values(), key=_WORDS.index)
    names = [name for name, word in said.items() if word == worst]
    if len(names) == len(said):
        return f"## {worst} on all {len(said)} machines\n\n"
    more = len(names) - _MAX_NAMED
    listed = ", ".join(f"`{name}`" for name in names[:_MAX_NAMED])
    listed += f" and {more} more" if more > 0 else ""
    return f"## {worst} on {len(names)} of {len(said)} machines: {listed}\n\n"


def _word_of(section: Section) -> str:
    """Return the word that a section begins with; what cannot be told is unknown."""
    headline = section.brief.partition("\n")[0].lstrip("# ")
    return next((word for word in _WORDS if headline.startswith(word)), _WORDS[1])


def _recorded(own: Sequence[Draft], others: Iterable[Section]) -> list[Draft]:
    """Return drafts whose records follow from those that stand there."""
    known = {section.name: section.record for section in others}
    made = [draft.record(known.get(draft.name, "")) for draft in own]
    return [
        dataclasses.replace(draft, record=_always(record))
        for draft, record in zip(own, made, strict=True)
    ]


def _always(record: str) -> Callable[[str], str]:
    return lambda _old: record


def _rendered(own: Sequence[Draft], max_bytes: int) -> list[Section]:
    """Render each within its even share of `max_bytes`; a draft that does not fit stays brief."""
    sections = [_drafted(draft, "") for draft in own]
    for position, draft in enumerate(own):
        share = (max_bytes - _size(sections)) // (len(own) - position)
        size = share - len(_REST) - len("\n\n")
        whole = _drafted(draft, draft.rest(size)) if size > 0 else sections[position]
        if _size([whole]) <= _size([sections[position]]) + share:
            sections[position] = whole
    return sections


def harmless(text: str) -> str:
    """Change foreign text so that no part of it reads as one of our markers."""
    return text.replace(_OURS, _OURS.replace("<!--", "<! --"))


def _drafted(own: Draft, rest: str) -> Section:
    return Section(
        name=own.name,
        run=own.run,
        attempt=own.attempt,
        brief=_lines(harmless(own.brief)),
        rest=_lines(harmless(rest)),
        record=own.record(""),
    )


def _section(begin: re.Match[str], text: str) -> Section | None:
    content, end, _ = text.partition(_END)
    if not end:
        return None
    record = _RECORD.match(content)
    content = content[record.end() :] if record else content
    brief, _, rest = content.partition(_REST)
    return Section(
        name=begin["name"],
        run=int(begin["run"]),
        attempt=int(begin["attempt"]),
        brief=brief,
        rest=rest,
        record=record["record"] if record else "",
    )


def _text(section: Section) -> str:
    begin = f"{_OURS}section name={section.name} run={section.run} attempt={section.attempt} -->\n"
    rest = _REST + section.rest if section.rest else ""
    record = f"{_OURS}record {section.record} -->\n" if section.record else ""
    return f"{begin}{record}{section.brief}{rest}{_END}"


def _shortened(sections: list[Section], max_bytes: int) -> list[Section]:
    """Cut the longest sections to their brief part until all fit; else leave sections out."""
    kept = list(sections)
    for longest in sorted(sections, key=lambda section: -_size([section])):
        if _size(kept) <= max_bytes:
            break
        kept[kept.index(longest)] = dataclasses.replace(longest, rest="")
    while kept and _size(kept) > max_bytes:
        kept.pop()
    return kept


def _left_out(shown: int, every: int) -> str:
    return f"{shown} of {every} machines shown.\n" if shown < every else ""


def _size(sections: Iterable[Section]) -> int:
    return sum(len(_text(section).encode()) for section in sections)


def _lines(text: str) -> str:
    """End with an empty line, so that Markdown after it is read as such."""
    return f"{text.strip()}\n\n" if text.strip() else ""


def _unix(text: str) -> str:
    """Undo what GitHub does to a text: its editor ends lines otherwise, and the last end is cut."""
    return text.replace("\r\n", "\n").rstrip() + "\n"


def _word(text: str, unwanted: re.Pattern[str]) -> str:
    return unwanted.sub("-", text)[:_MAX_NAME_CHARS].strip("-") or "unknown"
