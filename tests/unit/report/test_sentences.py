"""Blocks of the template: all are said, and what they are given stays apart from their text."""

import re
from importlib import resources
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

import ci_perf
from ci_perf.report import sentences
from ci_perf.report.escape import Command, Sentence, Words
from ci_perf.report.sheet import Topic

TEMPLATE = resources.files("ci_perf.report").joinpath("templates/sentences.jinja").read_text()
BLOCKS = re.findall(r"{% block (\w+) %}", TEMPLATE)


def test_every_block_is_said_somewhere_and_every_topic_has_one():
    code = "".join(path.read_text() for path in Path(ci_perf.__file__).parent.rglob("*.py"))
    named = set(re.findall(r'"(\w+)"', code + TEMPLATE))
    named |= set(re.findall(r"say\([\"'](\w+)[\"']", code))
    topics = {topic.name.lower() for topic in Topic}

    assert set(BLOCKS) - named - topics == set()
    assert topics <= set(BLOCKS)


FOREIGN = st.text(min_size=1) | st.sampled_from(["\0 0 \0", "`x`", "{{ reason }}", "a\n\nb", "%}"])


@given(FOREIGN, FOREIGN)
def test_what_is_foreign_stays_as_it_is_between_our_words(login, reason):
    said = sentences.say("refused", login=login, reason=Sentence(reason))

    assert said == ("Not done for ", login, ": ", reason, ".")
    assert [type(part) for part in said] == [Words, str, Words, Sentence, Words]


def test_what_stands_in_backticks_is_a_command_and_our_own_words_join_the_text():
    said = sentences.say("left_out", shown=1_000, every=2_000, what=Words("rows"))

    assert said == (
        "1,000 of 2,000 rows shown: ",
        Command("ci-perf compare --format csv"),
        " shows all.",
    )
    assert isinstance(said[1], Command)


def test_no_block_asks_for_the_verdict_of_a_row():
    assert not re.findall(
        r'row\.(?:verdict|signs|code|gate)|signs\.|severity|"(?:code|gate)"', TEMPLATE
    )
