import json
import sys

import msgspec
import pytest

from ci_perf.errors import InvalidFileError
from ci_perf.model import codec
from ci_perf.model.base import Name, SuiteName
from ci_perf.model.container import Container
from ci_perf.model.run import Run
from ci_perf.model.validity import Reason, Status, Validity
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
        (
            lambda d: d["failed"][0].update(xyzzy=1),
            r"\$\.failed\[0\]: unknown key 'xyzzy'; known: description, (?!.*\btimed\b)",
        ),
        (
            lambda d: d["environment"]["noted"].update(host_hash="\x1b[31m"),
            r"\$\.environment\.noted\.host_hash: expected .*, found ",
        ),
        (lambda d: d["tool"].update(timed=1), r"key 'timed'; known: name, version"),
        (
            lambda d: d.pop("source"),
            r"\$: expected the field 'source' of a run of ci-perf",
        ),
        (lambda d: d.update(schema_version=99), r"\$\.schema_version: .* at most 1, found 99"),
        (lambda d: d.update(schema_version=0), r"\$\.schema_version: expected 1, found 0"),
        (lambda d: d.update(type="baseline"), r"\$\.type: expected 'run', found 'baseline'"),
        (
            lambda d: d["measured"][0]["processes"][0]["timed"].update(block_s=[-1.0]),
            r"\$\.measured\[0\]\.processes\[0\]\.timed\.block_s\[0\]: .* >= 1e-12, found -1.0",
        ),
        (
            lambda d: d["measured"][0]["processes"][0]["timed"].update(block_s=["x"]),
            r"block_s\[0\]: expected float, found str",
        ),
        (lambda d: d["measured"][0].update(processes=[]), r"processes: .* length >= 1"),
        (lambda d: d["measured"][0].update(workload="a b"), r"workload: .*regex.*, found \"a b\""),
        (lambda d: d["measured"].append(d["measured"][0]), r"workload 'a' appears twice"),
        (
            lambda d: d["validity"].update(status="invalid"),
            r"\$\.validity: expected status 'valid', which follows .*, found 'invalid'$",
        ),
        (
            lambda d: d["validity"].update(status="x"),
            r"\$\.validity\.status: expected one of 'valid', 'degraded', 'invalid', found 'x'$",
        ),
        (
            lambda d: d["measured"][0].update(launch="torch_run"),
            r"launch: expected one of 'command', 'fork', .*, found 'torch_run'; did you",
        ),
        (
            lambda d: d["measured"][0]["processes"][0].update(index=2**63),
            r"processes\[0\]\.index: expected int <= \d+, found 9223372036854775808",
        ),
        (
            lambda d: d["measured"][0]["processes"][0]["timed"].update(block_s=[1e300]),
            r"block_s\[0\]: expected float <= 1000000000.0, found 1e\+300",
        ),
        (
            lambda d: d["measured"][0]["parameters"].update({"a b": 1, "c": 2**64}),
            r"\$\.measured\[0\]\.parameters\.c: expected int <= ",
        ),
        (
            lambda d: d["measured"][0]["parameters"].update({"a b": 2**64, "c": 1}),
            r'\$\.measured\[0\]\.parameters\["a b"\]: expected int <= .*, found \d{20}$',
        ),
    ],
)
def test_a_wrong_document_says_where_it_is_wrong(edit, message):
    data = json.loads(codec.encode(a_run(a_measured("a", 1e-3), a_failed("b"))))
    edit(data)

    with pytest.raises(InvalidFileError, match=r"^run\.json: ") as caught:
        codec.decode(json.dumps(data), Run, name="run.json")
    caught.match(message)


def test_a_place_that_cannot_be_found_again_is_named_as_far_as_it_is_known():
    """Of two equal keys, the parser that looks for the place sees only the last."""
    text = codec.encode(a_run(a_measured("a", 1e-3, parameters={"n": 1})))
    twice = text.replace('"n": 1', '"n": null, "n": 1')

    with pytest.raises(InvalidFileError, match=r"parameters\[\.\.\.\]: expected .*, found null"):
        codec.decode(twice, Run, name="run.json")


@pytest.mark.parametrize("literal", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_no_number_that_is_not_finite_gets_in(literal):
    text = codec.encode(a_run(a_measured("a", 0.125))).replace("0.125", literal)
    assert literal in text

    with pytest.raises(InvalidFileError, match=r"run\.json: "):
        codec.decode(text, Run, name="run.json")


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "[]", "null", '"run"', "<<<<<<< HEAD", "\x00", "[" * 100_000),
        '{"type": ' + "[" * 100_000,
        '{"x": ' + "[" * 100_000 + "]" * 100_000 + "}",
        '{"schema_version": ' + "1" * 5000 + "}",
    ],
    ids=lambda text: text[:20],
)
def test_what_is_no_run_at_all_is_refused(text):
    with pytest.raises(InvalidFileError, match=r"run\.json: "):
        codec.decode(text, Run, name="run.json")


def test_a_near_word_is_suggested_and_else_all_are_named():
    assert codec.did_you_mean("step_tme_s", ["step_time_s", "graphs"]) == (
        "did you mean 'step_time_s'?"
    )
    assert codec.did_you_mean("zzz", ["b", "a", "b", "a"]) == "known: a, b"


@pytest.mark.parametrize(
    ("status", "reasons"),
    [
        (Status.INVALID, ()),
        (Status.DEGRADED, ()),
        (Status.VALID, (Status.DEGRADED,)),
        (Status.DEGRADED, (Status.DEGRADED, Status.INVALID)),
        (Status.INVALID, (Status.DEGRADED,)),
    ],
)
def test_a_machine_is_judged_by_its_worst_reason_and_by_nothing_else(status, reasons):
    given = tuple(Reason(code="x", status=each, detail="") for each in reasons)

    with pytest.raises(ValueError, match="which follows from the reasons"):
        Validity(status=status, reasons=given)


@pytest.mark.parametrize(
    "name", ["..", ".", "...", "-rf", "=1+1", "+1", ".hidden", "a\n", "a b", "a/b", "a\x1b[2J", ""]
)
def test_no_name_is_a_path_a_switch_a_formula_or_two_lines(name):
    for text, kind in [(name, Name), (name, SuiteName), (f"builtin:{name}", SuiteName)]:
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert(text, kind)


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ({"memory": "32 GB"}, 'memory: expected a size such as 32g or 512m, found "32 GB"'),
        ({"shm_size": ""}, 'shm_size: expected a size such as 32g or 512m, found ""'),
        ({"cpus": "all"}, 'cpus: expected numbers of cores, such as 0-3,8, found "all"'),
    ],
)
def test_what_a_container_may_have_is_told_in_words_and_not_in_patterns(told, message):
    with pytest.raises(InvalidFileError) as caught:
        codec.convert(told, Container, name="suite.toml")

    assert str(caught.value) == f"suite.toml: $.{message}"


@pytest.mark.parametrize("name", ["a", "mlp_256", "matmul.size=256.dtype=bf16", "3", "_x", "a+b"])
def test_honest_names_are_accepted(name):
    assert msgspec.convert(name, Name) == name
    assert msgspec.convert(f"builtin:{name}", SuiteName) == f"builtin:{name}"


def test_text_that_no_file_can_hold_is_refused_with_the_place():
    with pytest.raises(InvalidFileError, match=r"^it: expected text in UTF-8, .*caf.udce9'; take"):
        codec.decode('{"reason": "caf\udce9"}', Run, name="it")


def test_what_is_not_unicode_is_written_with_question_marks():
    text = codec.encode(a_run(a_failed("a", "no file caf\udce9", output="\ud800!")))

    failed = codec.decode(text, Run, name="run.json").failed[0]
    assert (failed.reason, failed.output) == ("no file caf?", "?!")


def test_half_a_character_as_a_key_of_parsed_data_is_refused():
    with pytest.raises(InvalidFileError, match="x: expected text in UTF-8, found"):
        codec.convert({"\ud83d": 1}, Container, name="x")


@pytest.mark.parametrize("kind", [str, bytes])
def test_what_we_have_written_is_read_once(kind):
    text = codec.encode(a_run(a_measured("a", 1e-3)))
    called = set()

    sys.setprofile(lambda frame, *_: called.add(frame.f_code.co_name))
    try:
        codec.decode(text if kind is str else text.encode(), Run, name="run.json")
    finally:
        sys.setprofile(None)

    assert "decode" in called
    assert "_repeats_itself" not in called


@pytest.mark.parametrize(
    "text",
    ['{"a": 1, "a": 2}', '{"b": [{"a": 1, "b": 2, "a": 1}]}', b'{"a": 1, "a": 2}'],
)
def test_a_key_that_stands_twice_is_refused(text):
    class Anything(msgspec.Struct):
        a: int = 0
        b: list[dict[str, int]] = []

    with pytest.raises(
        InvalidFileError, match=r"run.json: expected each key once, found 'a' twice"
    ):
        codec.decode(text, Anything, name="run.json")
