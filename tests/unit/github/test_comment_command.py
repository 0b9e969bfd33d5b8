import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_perf.errors import UsageError
from ci_perf.github import comment_command
from ci_perf.github.comment_command import AcceptOrder

SHA = "a1b2c3d4e5f6"
WORDS = st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9_.=+-]{0,30}", fullmatch=True)
SPACES = st.text(" \t", min_size=1, max_size=3)
REASONS = st.text(
    st.characters(exclude_categories=["C", "Z"], exclude_characters='"“”'), min_size=1, max_size=80
)


@pytest.mark.parametrize(
    ("line", "order"),
    [
        (f"/ci-perf accept {SHA}", AcceptOrder(sha=SHA, workloads=(), reason="")),
        (f"/ci-perf accept {SHA} mlp", AcceptOrder(sha=SHA, workloads=("mlp",), reason="")),
        (
            f'/ci-perf accept {"a" * 40} mlp cnn.n=4 "the fix is worth it"  ',
            AcceptOrder(sha="a" * 40, workloads=("mlp", "cnn.n=4"), reason="the fix is worth it"),
        ),
        (
            f"/ci-perf accept {SHA} “from a phone”",
            AcceptOrder(sha=SHA, workloads=(), reason="from a phone"),
        ),
        (f"/ci-perf\taccept  {SHA}\r\n\r\nThanks!", AcceptOrder(sha=SHA, workloads=(), reason="")),
        (
            f'/ci-perf accept {SHA} "naïve → fast"',
            AcceptOrder(sha=SHA, workloads=(), reason="naïve → fast"),
        ),
    ],
)
def test_what_follows_the_grammar_is_understood(line, order):
    assert comment_command.is_order(line)
    assert comment_command.parse_order(line) == order


@pytest.mark.parametrize(
    "body",
    [
        "",
        "LGTM",
        " /ci-perf accept a1b2c3d4e5f6",
        "> /ci-perf accept a1b2c3d4e5f6",
        "Please:\n/ci-perf accept a1b2c3d4e5f6",
        "`/ci-perf accept a1b2c3d4e5f6`",
        "/ci-performance accept a1b2c3d4e5f6",
        "/CI-PERF accept a1b2c3d4e5f6",
        "/ci-perf-accept a1b2c3d4e5f6",
    ],
)
def test_what_does_not_speak_to_us_is_left_alone(body):
    assert not comment_command.is_order(body)


@pytest.mark.parametrize(
    ("line", "match"),
    [
        ("/ci-perf", "expected accept, found 'nothing'"),
        ("/ci-perf reject a1b2c3d", "expected accept, found 'reject'"),
        ("/ci-perf accept", "digits of the commit, in small letters, found 'nothing'"),
        ("/ci-perf accept a1b2c3d", "12 to 40 digits of the commit"),
        ("/ci-perf accept a1b2c3d4e5f", "12 to 40 digits of the commit"),
        ("/ci-perf accept A1B2C3D4E5F6", "in small letters"),
        (f"/ci-perf accept {'a' * 41}", "digits of the commit"),
        ("/ci-perf accept main", "digits of the commit"),
        (f"/ci-perf accept {SHA} --replace", "the name of a workload"),
        (f"/ci-perf accept {SHA} ../../x", "the name of a workload"),
        (f"/ci-perf accept {SHA} a/b", "the name of a workload"),
        (f"/ci-perf accept {SHA} $(id)", "the name of a workload"),
        (f"/ci-perf accept {SHA} because, it is", "the name of a workload"),
        (f'/ci-perf accept {SHA} "one" two', "the name of a workload"),
        (f'/ci-perf accept {SHA} "begun', "the name of a workload"),
        (f'/ci-perf accept {SHA} ""', "a reason in words"),
        (f'/ci-perf accept {SHA} "\u202e"', "a reason in words"),
        (f'/ci-perf accept {SHA} "{"x" * 401}"', "at most 400 characters"),
        (f"/ci-perf accept {SHA} {'w ' * 51}", "at most 50 workloads"),
        (f"/ci-perf accept {SHA} {'w' * 3000}", "at most 2,000 characters"),
    ],
)
def test_what_breaks_the_grammar_is_refused_with_what_is_wrong(line, match):
    assert comment_command.is_order(line)
    with pytest.raises(UsageError, match=match) as caught:
        comment_command.parse_order(line)

    assert comment_command.USAGE in str(caught.value)


@given(st.lists(WORDS, max_size=5), REASONS | st.just(""), SPACES, SPACES)
def test_every_order_that_can_be_written_is_read_as_it_was_meant(workloads, reason, gap, end):
    said = [f'"{reason}"'] if reason else []
    line = gap.join(["/ci-perf", "accept", SHA, *workloads, *said]) + end

    assert comment_command.parse_order(line) == AcceptOrder(
        sha=SHA, workloads=tuple(workloads), reason=reason
    )


@given(st.text(max_size=200) | st.text('/ci-perf acpt"“”\n\t 0a', max_size=60))
def test_any_text_is_an_order_that_fits_or_is_refused(text):
    with contextlib.suppress(UsageError):
        found = comment_command.parse_order(f"/ci-perf {text}")
        assert 12 <= len(found.sha) <= 40
        assert set(found.sha) <= set("0123456789abcdef")
        assert all(name.isascii() and "/" not in name for name in found.workloads)
        assert found.reason.isprintable()
        assert len(found.reason) <= comment_command.MAX_REASON_CHARS
