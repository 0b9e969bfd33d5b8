import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ci_perf.errors import CannotWriteError
from ci_perf.github import actions


def read_by_the_runner(text):
    """Read a file of outputs as GitHub's runner does: NAME=VALUE, or NAME<<END up to END."""
    found, lines = {}, text.split("\n")
    assert lines.pop() == "", "the last line does not end"
    while lines:
        line = lines.pop(0)
        if not line:
            continue
        equals, heredoc = line.find("="), line.find("<<")
        if equals >= 0 and (heredoc < 0 or equals < heredoc):
            found[line[:equals]] = line[equals + 1 :]
            continue
        name, end = line[:heredoc], line[heredoc + 2 :]
        stop = lines.index(end)
        found[name] = "\n".join(lines[:stop])
        lines = lines[stop + 1 :]
    return found


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r"))
    | st.sampled_from(["a\nLD_PRELOAD=/tmp/x", "ghadelimiter", "x\nci_perf_0\ny=1"])
)
def test_no_value_becomes_another_output(tmp_path, value):
    file = tmp_path / "output"
    file.write_text("before=1\n")
    actions.write_outputs(file, {"verdict": value, "url": "u"})

    text = file.read_text(encoding="utf-8")
    assert read_by_the_runner(text) == {"before": "1", "verdict": value, "url": "u"}


def test_the_end_of_a_value_cannot_be_guessed(tmp_path):
    for name in ("a", "b"):
        actions.write_outputs(tmp_path / name, {"v": "1"})

    assert (tmp_path / "a").read_text() != (tmp_path / "b").read_text()


def test_a_summary_is_added_to_what_the_step_has_written(tmp_path):
    file = tmp_path / "summary"
    file.write_text("theirs\n")
    actions.add_to_summary(file, "ours")

    assert file.read_text() == "theirs\nours\n"


def test_a_summary_that_github_would_drop_is_refused(tmp_path):
    file = tmp_path / "summary"
    file.write_text("x" * 1_000_000)
    actions.add_to_summary(file, "y" * actions.free_summary_bytes(file))

    assert file.stat().st_size == actions.MAX_SUMMARY_BYTES
    with pytest.raises(CannotWriteError, match="1,048,576 bytes"):
        actions.add_to_summary(file, "z")


def test_a_folder_that_is_gone_is_said(tmp_path):
    with pytest.raises(CannotWriteError, match="No such file"):
        actions.write_outputs(tmp_path / "gone" / "output", {"a": "1"})


@given(st.text())
def test_a_warning_is_one_command_whatever_it_says(text):
    command = actions.spell_warning(text)

    assert command.startswith("::warning title=ci-perf::")
    assert not re.search("[\r\n]", command)
