"""Sentences of reports: each is a block of templates/sentences.jinja.

The text of a block is ours, and what stands there in backticks is a command. A value is foreign
unless it is `Words`: it never enters the text, in which a number leads to it. So no sentence can
forget to escape, and every form of report escapes in its own way.
"""

import functools
import pkgutil
import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, cast

from ci_perf.report import phrases, units
from ci_perf.report.escape import Command, Phrase, Words

if TYPE_CHECKING:
    import jinja2
    from jinja2.runtime import Context

# Marks the number of a value; no text of ours has it.
_MARK = "\0"
_BLOCK = re.compile(r"{% block (\w+) %}(.*?){% endblock %}", re.DOTALL)


def say(block: str, **values: object) -> Phrase:
    """Fill in a block; empty where it says nothing of these values."""
    kept: list[Phrase] = []
    template = _load(block)
    context = template.new_context(values | {"kept": kept})
    text = " ".join("".join(template.root_render_func(context)).split())
    said: list[str] = []
    for position, piece in enumerate(text.split(_MARK)):
        said += kept[int(piece)] if position % 2 else phrases.split_commands(piece)
    return tuple(said)


def write(block: str, **values: object) -> Words:
    """Fill in a block that has no foreign part, for a log; commands keep their backticks."""
    said = say(block, **values)
    return Words("".join(f"`{part}`" if isinstance(part, Command) else part for part in said))


@functools.cache
def _load(block: str) -> "jinja2.Template":
    """Compile one block: all of them take longer than to judge a suite."""
    return _make_environment().from_string(_read_blocks()[block])


@functools.cache
def _read_blocks() -> dict[str, str]:
    text = pkgutil.get_data("ci_perf.report", "templates/sentences.jinja") or b""
    return dict(_BLOCK.findall(text.decode()))


@functools.cache
def _make_environment() -> "jinja2.Environment":
    """Say what blocks may use. Jinja2 comes late: a line of progress needs none."""
    import jinja2

    environment = jinja2.Environment(
        autoescape=False,  # noqa: S701  no foreign text is in the output
        finalize=jinja2.pass_context(_keep),
        undefined=jinja2.StrictUndefined,
    )
    in_context: Callable[[Any], Any] = jinja2.pass_context
    environment.globals |= {
        "each": in_context(_say_each),
        "joined": phrases.join_phrases,
        "moved": phrases.render_moved,
        "named": phrases.name_workloads,
        "say": in_context(_say_within),
        "title": phrases.metric_title,
        "titled": phrases.title_row,
        "titles": phrases.titles,
        "units": units,
    }
    return environment


def _keep(context: "Context", value: object) -> str:
    """Keep what is not our own text out of it, under a number."""
    if isinstance(value, Words):
        return value
    if isinstance(value, int):
        return f"{value:,}"
    if not value:
        return ""
    kept: list[Phrase] = context["kept"]
    kept.append((value,) if isinstance(value, str) else tuple(cast("Iterable[str]", value)))
    return f"{_MARK}{len(kept) - 1}{_MARK}"


def _say_within(context: "Context", block: str, **values: object) -> Phrase:
    """Fill in another block, which knows the values of this one."""
    return say(block, **(context.get_all() | values))


def _say_each(context: "Context", things: Iterable[object], block: str, **values: object) -> Phrase:
    """List things, each by a block that knows it as `row`."""
    return phrases.join_phrases(_say_within(context, block, row=each, **values) for each in things)
