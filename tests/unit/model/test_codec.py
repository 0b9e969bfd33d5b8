import json

import pytest

from ci_perf.errors import InvalidFileError
from ci_perf.model import codec
from ci_perf.model.run import Run
from tests.runs import a_failed, a_measured, a_run


def test_what_is_written_is_read():
    run = a_run(a_measured("a", 1e-3, 2e-3), a_failed("b"))

    assert codec.decode(codec.encode(run), Run, name="run.json") == run


def test_the_same_document_gives_the_same_text():
    text = codec.encode(a_run(a_measured("a", 1e-3)))

    assert codec.encode(codec.decode(text, Run, name="run.json")) == text
    assert text.endswith("}\n")


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda d: d.update(extra=1), r"\$: unknown key 'extra'; known: "),
        (lambda d: d.update(mesured=[]), r"unknown key 'mesured'; did you mean 'measured'\?"),
        (lambda d: d.pop("source"), r"\$: Object missing required field source"),
        (lambda d: d.update(schema_version=99), r"\$\.schema_version: .* at most 1, found 99"),
        (lambda d: d.update(schema_version=0), r"\$\.schema_version: expected 1, found 0"),
        (lambda d: d.update(type="baseline"), r"\$\.type: Invalid value 'baseline'"),
        (
            lambda d: d["measured"][0]["processes"][0]["timed"].update(block_s=[-1.0]),
            r"\$\.measured\[0\]\.processes\[0\]\.timed\.block_s\[0\]: .* > 0.*, found -1.0",
        ),
        (
            lambda d: d["measured"][0]["processes"][0]["timed"].update(block_s=["x"]),
            r"block_s\[0\]: expected float, found str",
        ),
        (lambda d: d["measured"][0].update(processes=[]), r"processes: .* length >= 1"),
        (lambda d: d["measured"][0].update(workload="a b"), r"workload: .*regex.*, found \"a b\""),
        (lambda d: d["measured"].append(d["measured"][0]), r"workload 'a' appears twice"),
        (lambda d: d["failed"][0].update(workload="a"), r"workload 'a' appears twice"),
    ],
)
def test_a_wrong_document_says_where_it_is_wrong(edit, message):
    data = json.loads(codec.encode(a_run(a_measured("a", 1e-3), a_failed("b"))))
    edit(data)

    with pytest.raises(InvalidFileError, match=r"^run\.json: ") as caught:
        codec.decode(json.dumps(data), Run, name="run.json")
    caught.match(message)


@pytest.mark.parametrize("literal", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_no_number_that_is_not_finite_gets_in(literal):
    text = codec.encode(a_run(a_measured("a", 0.125))).replace("0.125", literal)
    assert literal in text

    with pytest.raises(InvalidFileError, match=r"run\.json: "):
        codec.decode(text, Run, name="run.json")


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", '"run"', "<<<<<<< HEAD", "\x00", "[" * 100_000]
)
def test_what_is_no_run_at_all_is_refused(text):
    with pytest.raises(InvalidFileError, match=r"run\.json: "):
        codec.decode(text, Run, name="run.json")


def test_a_near_word_is_suggested_and_else_all_are_named():
    assert codec.did_you_mean("step_tme_s", ["step_time_s", "graphs"]) == (
        "did you mean 'step_time_s'?"
    )
    assert codec.did_you_mean("zzz", ["b", "a"]) == "known: a, b"
