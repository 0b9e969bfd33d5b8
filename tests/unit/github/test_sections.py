import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_perf.github import sections
from ci_perf.github.sections import Draft
from ci_perf.report import headline as headlines

KEY = "smoke"


def a_draft(name="h200", *, run=1, attempt=1, brief="### fine", rest="all of it"):
    return Draft(
        name=name, run=run, attempt=attempt, brief=brief, rest=lambda size: rest[: max(0, size)]
    )


def posted(*drafts, key=KEY, **more):
    """One comment after each job has written its section."""
    body = ""
    for draft in drafts:
        body = sections.compose(key, sections.parse(body, key), [draft], **more)
    return body


def names(body):
    return [one.name for one in sections.parse(body, KEY)]


def test_a_record_follows_from_the_one_that_stands_there():
    def draft(name, run):
        return dataclasses.replace(a_draft(name, run=run), record=lambda old: f"{old}{run}")

    body = posted(draft("h200", 1), draft("l4", 7), draft("h200", 2), a_draft("l4", run=8))

    assert [each.record for each in sections.parse(body, KEY)] == ["12", "7"]


def test_a_record_stays_where_only_the_headline_of_another_machine_fits():
    first = dataclasses.replace(a_draft("a", rest="x" * 5000), record=lambda _old: "known")
    body = posted(first, a_draft("b", rest="y" * 5000), max_bytes=3000)

    assert sections.parse(body, KEY)[0].record == "known"


def test_a_comment_begins_with_its_marker():
    assert posted(a_draft()).startswith("<!-- ci-perf:v1 key=smoke -->\n")


def test_a_key_that_begins_like_another_is_another():
    assert not sections.is_ours(posted(a_draft(), key="smoke2"), KEY)
    assert not sections.is_ours(posted(a_draft(), key="smoke"), "smoke2")


def test_a_marker_that_is_quoted_or_stands_further_down_is_not_ours():
    body = posted(a_draft())

    assert not sections.is_ours(f"> {body}", KEY)
    assert not sections.is_ours(f"look:\n{body}", KEY)


def test_a_key_cannot_end_the_marker():
    assert sections.marker("x --> <b>").count(">") == 1


def test_machines_stand_in_the_order_of_their_names_whoever_wrote_first():
    body = posted(a_draft("l4"), a_draft("a100"), a_draft("h200"))

    assert names(body) == ["a100", "h200", "l4"]


def test_only_the_own_section_is_replaced():
    body = posted(a_draft("a100", rest="first"), a_draft("l4", rest="other"))
    again = sections.compose(
        KEY, sections.parse(body, KEY), [a_draft("a100", run=2, rest="second")]
    )

    assert "second" in again
    assert "other" in again
    assert "first" not in again


def test_a_section_keeps_its_run_and_attempt():
    (found,) = sections.parse(posted(a_draft(run=7, attempt=3)), KEY)

    assert found.age == (7, 3)


def test_a_comment_survives_the_ends_of_lines_of_githubs_editor():
    body = posted(a_draft("a100"), a_draft("l4"))

    assert sections.parse(body.replace("\n", "\r\n"), KEY) == sections.parse(body, KEY)
    assert sections.parse(body.rstrip(), KEY) == sections.parse(body, KEY)


def test_of_the_same_machine_in_two_comments_the_newest_counts():
    every = [one for run in (2, 3, 1) for one in sections.parse(posted(a_draft(run=run)), KEY)]

    assert [one.run for one in sections.newest(every)] == [3]


def test_a_damaged_section_is_left_out_and_the_others_stay():
    body = posted(a_draft("a100"), a_draft("h200"), a_draft("l4"))
    first, _, rest = body.partition("<!-- ci-perf:end -->\n")

    assert names(first + rest) == ["h200", "l4"]


def test_a_section_is_rendered_within_what_the_others_leave():
    others = sections.parse(posted(a_draft("a100", rest="x" * 10_000)), KEY)
    own = Draft(name="l4", run=1, attempt=1, brief="b", rest=lambda size: f"{size}")
    body = sections.compose(KEY, others, [own], max_bytes=30_000)

    assert 19_000 < int(sections.parse(body, KEY)[1].rest) < 20_000


def test_machines_that_are_reported_together_share_evenly():
    drafts = [a_draft(name, rest="x" * 60_000) for name in ("a100", "h200", "l4")]
    found = sections.parse(sections.compose(KEY, (), drafts), KEY)

    sizes = [len(one.rest) for one in found]
    assert min(sizes) > 20_000
    assert max(sizes) - min(sizes) < 300


def test_what_one_machine_leaves_the_next_may_have():
    short, long = a_draft("a100"), a_draft("l4", rest="x" * 60_000)
    found = sections.parse(sections.compose(KEY, (), [short, long]), KEY)

    assert len(found[1].rest) > 59_000


def test_of_an_older_section_without_room_the_headline_stays():
    body = posted(a_draft("a100", rest="x" * 60_000), a_draft("l4", rest="y" * 60_000))
    first, second = sections.parse(body, KEY)

    assert first.brief.strip() == "### fine"
    assert first.rest == ""
    assert len(second.rest) > 30_000


def test_more_machines_than_have_room_are_counted():
    body = posted(*(a_draft(f"m{i:03}", brief="b" * 300) for i in range(40)), max_bytes=9_000)

    assert len(body.encode()) <= 9_000
    assert body.endswith(" machines shown.\n")
    assert "m039" in names(body)


@pytest.mark.parametrize("text", ["", "-->", "a b\nc", "ü" * 300])
def test_any_text_makes_a_name(text):
    name = sections.name(text)

    assert names(posted(a_draft(name))) == [name]


FOREIGN = st.text() | st.sampled_from(
    [
        "<!-- ci-perf:end -->\n",
        "<!-- ci-perf:rest -->\n",
        "<!-- ci-perf:v1 key=smoke -->\n",
        "<!-- ci-perf:section name=evil run=999 attempt=1 -->\nforged\n<!-- ci-perf:end -->\n",
    ]
)


@given(st.lists(FOREIGN).map("".join), st.lists(FOREIGN).map("".join))
def test_nothing_that_is_shown_passes_for_a_section(brief, rest):
    body = posted(a_draft("a100"), a_draft("l4", brief=brief, rest=rest), a_draft("z"))

    assert names(body) == ["a100", "l4", "z"]
    assert all(one.run == 1 for one in sections.parse(body, KEY))


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 5_000)), min_size=1, max_size=12),
    st.integers(1_500, 20_000),
)
def test_a_comment_never_exceeds_its_bytes(machines, max_bytes):
    drafts = [a_draft(f"m{number}", rest="€" * size) for number, size in machines]

    assert len(posted(*drafts, max_bytes=max_bytes).encode()) <= max_bytes


@pytest.mark.parametrize(
    "left", ["", "\n\n*(removed by a maintainer)*\n", "\n<!-- ci-perf:end -->\n"]
)
def test_a_comment_of_which_somebody_left_only_the_marker_has_no_sections(left):
    assert sections.parse(sections.marker(KEY) + left, KEY) == ()


@pytest.mark.parametrize(
    ("briefs", "headline"),
    [
        (("### ✅ Pass: fine", "### ❌ Act: slower"), "## ❌ Act on 1 of 2 machines: `m1`"),
        (("### ✅ Pass: fine", "### ❓ Unknown: busy"), "## ❓ Unknown on 1 of 2 machines: `m1`"),
        (("### ✅ Pass: fine", "### ✅ Pass: fine"), "## ✅ Pass on all 2 machines"),
        (("### ✅ Pass: fine", "somebody's words"), "## ❓ Unknown on 1 of 2 machines: `m1`"),
        (
            ("### ❌ Act: a",) * 5 + ("### ✅ Pass: b",),
            "## ❌ Act on 5 of 6 machines: `m0`, `m1`, `m2` and 2 more",
        ),
    ],
)
def test_several_machines_have_one_headline_over_all(briefs, headline):
    body = posted(*[a_draft(f"m{i}", brief=brief) for i, brief in enumerate(briefs)])

    assert body.splitlines()[1] == headline
    assert len(sections.parse(body, KEY)) == len(briefs)


def test_one_machine_needs_no_headline_over_all():
    assert posted(a_draft(brief="### ✅ Pass: fine")).count("Pass") == 1


def test_the_words_of_the_headline_over_all_are_those_of_a_report():
    assert [word.split(" ")[1] for word in sections._WORDS] == ["Act", "Unknown", "Pass"]
    assert {word.split(" ")[1]: word.split(" ")[0] for word in sections._WORDS} == {
        word.value: icon for word, icon in headlines._ICON.items()
    }
