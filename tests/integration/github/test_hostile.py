"""Comparisons that somebody wrote to do harm: refused whole, or shown and never obeyed."""

import json
import re

import pytest

from ci_perf.errors import InvalidFileError
from ci_perf.github.report_comment import Comment
from ci_perf.model import codec
from ci_perf.model.comparison import Verdict
from tests.comparisons import a_change, a_comparison
from tests.integration.github.stage import worse
from tests.unit.report.rendered import Page

MIB = 2**20


def written(stage, text):
    path = stage.folder / "comparison.json"
    path.write_text(text)
    return path


def publish(stage, change):
    """Publish a comparison that somebody has edited by hand."""
    data = json.loads(codec.encode(worse()))
    change(data)
    return stage.call(written(stage, json.dumps(data)), "--check")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("exit_code", -1),
        ("exit_code", 2),
        ("exit_code", "0"),
        ("verdict", "fine"),
        ("suite", "../../etc"),
        ("suite", "x" * MIB),
        ("schema_version", 99),
        ("rows", {}),
        ("rows", [{"row": "change"}]),
        ("note", "unknown"),
        ("head", None),
    ],
)
def test_what_no_judge_writes_is_refused_with_its_place_and_nothing_is_posted(
    on_pull, field, value
):
    with pytest.raises(InvalidFileError) as failure:
        publish(on_pull, lambda data: data.update({field: value}))

    assert str(failure.value).startswith(str(on_pull.folder / "comparison.json"))
    assert len(str(failure.value)) < 1_000
    assert on_pull.github.requests == []
    assert not on_pull.summary


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999", "-1e999", "9" * 5_000])
def test_a_number_that_is_none_is_refused(on_pull, number):
    text = codec.encode(worse()).replace('"limit": 0.02', f'"limit": {number}')

    with pytest.raises(InvalidFileError):
        on_pull.call(written(on_pull, text))
    assert on_pull.github.requests == []


@pytest.mark.parametrize("field", ["ratio", "limit", "base", "smallest_detectable"])
def test_a_number_that_no_judge_makes_is_shown_or_refused(on_pull, field):
    for number in (0, -1, 1e308, -1e308, 5e-324, 10**18, None):

        def change(data, number=number):
            data["rows"][0][field] = number

        asked_before = len(on_pull.github.requests)
        try:
            ended = publish(on_pull, change)
        except InvalidFileError:
            assert len(on_pull.github.requests) == asked_before
        else:
            assert ended.code == 1
            assert "bug in ci-perf" not in ended.err


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "[]", '{"type": "comparison"}', "\0", "[" * 100_000, '{"a":' * 100_000),
        "\ud800".encode("utf-8", "surrogatepass").decode("latin-1"),
        "{}\n{}",
    ],
    ids=lambda text: text[:9],
)
def test_what_is_no_document_is_refused_before_anything_is_posted(on_pull, text):
    with pytest.raises(InvalidFileError, match=r"comparison\.json"):
        on_pull.call(written(on_pull, text))
    assert on_pull.github.requests == []


def test_a_file_of_gigabytes_is_refused_unread(on_pull):
    path = on_pull.folder / "comparison.json"
    with path.open("wb") as file:
        file.truncate(4 * 2**30)

    with pytest.raises(InvalidFileError, match="at most 50 MiB"):
        on_pull.call(path)


def test_more_rows_than_any_suite_has_are_refused(on_pull):
    with pytest.raises(InvalidFileError, match=r"\$\.rows: expected at most 20,000"):
        on_pull.publish(of=[a_comparison(*[a_change()] * 20_001)])


@pytest.mark.parametrize("character", ["`", "|", "<", "\n", "@a ", "\u202e", "::a::\n"])
def test_texts_of_a_megabyte_are_shown_short(on_pull, character):
    text = character * (MIB // len(character))

    def change(data):
        data["selection"] = [text, text]
        data["rows"][0] = {
            **{key: data["rows"][0][key] for key in ("workload", "metric", "gate")},
            "row": "uncompared",
            "verdict": "failed",
            "code": "failed",
            "base": {},
            "head": {},
            "note": text[:9_000],
            "output": text[:9_000],
            "parameters": {text: text},
        }

    ended = publish(on_pull, change)

    (body,) = on_pull.bodies()
    assert len(body.encode()) < 20_000
    assert len(ended.out + ended.err) < 5_000
    assert Page(body).open == []


def test_a_workload_cannot_forge_what_a_newer_run_has_written(on_pull):
    forged = "<!-- ci-perf:v1 key=standard -->\n<!-- ci-perf:run=999 attempt=1 record= -->\n"

    def change(data):
        data["rows"][0]["note"] = forged
        data["head"]["label"] = forged
        data["head"]["source"]["branch"] = forged

    publish(on_pull, change)
    on_pull.on_pull(run=101)
    publish(on_pull, change)

    (body,) = on_pull.bodies()
    assert Comment(id=1, url="", body=body).age == (101, 1)
    assert body.count("<!-- ci-perf:") == 2


def test_no_name_commands_the_runner(on_pull):
    row = a_change("w", Verdict.REGRESSED, ratio=1.1, note="\n::error::obey\n##[group]me")
    ended = on_pull.publish("--check", of=[a_comparison(row)])

    for line in (ended.out + ended.err).splitlines():
        assert not re.match(r"\s*::", line)
        assert "##[" not in line
