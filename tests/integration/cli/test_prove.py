"""`ci-perf prove` on a proof that is there, and on two."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from ci_perf.cli import main
from ci_perf.errors import CannotWriteError, ExitCode, InvalidFileError, UsageError
from ci_perf.model.proof import Figure
from ci_perf.system import files
from tests.proofs import a_proof, a_step


@pytest.fixture(autouse=True)
def proofs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    step = a_step("events", "held", Figure(name="device_over_wall", value=1.0))
    slow = Figure(name="timed_over_bare", value=1.2)
    files.write(tmp_path / "good.json", a_proof(step, a_step("harness"), device="cuda:0"))
    broken = a_proof(step, a_step("harness", "did_not_hold", slow), device="cuda:0")
    files.write(tmp_path / "bad.json", broken)
    return tmp_path


def typed(*words):
    return CliRunner().invoke(main.cli, ["prove", *words], standalone_mode=False)


def test_a_step_that_did_not_hold_is_exit_code_3():
    assert typed("--show", "good.json").return_value == ExitCode.OK
    assert typed("--show", "bad.json").return_value == ExitCode.NO_ANSWER
    assert typed("--compare", "good.json", "bad.json").return_value == ExitCode.NO_ANSWER
    assert typed("--compare", "bad.json", "bad.json").return_value == ExitCode.OK
    assert typed("--compare", "bad.json", "good.json").return_value == ExitCode.OK


def test_each_form_goes_where_it_was_asked_for(proofs):
    assert "did not hold" in typed("--show", "bad.json").stdout
    markdown = typed("--show", "bad.json", "--format", "markdown", "-o", "proof.md")
    assert markdown.stdout == ""
    assert (proofs / "proof.md").read_text().startswith("**`NVIDIA H200`: 1 of 2 steps held")
    assert json.loads(typed("--show", "bad.json", "--format", "json").stdout)["type"] == "proof"
    typed("--compare", "good.json", "bad.json", "--page", "both.html")
    assert "<h1>Of 2 steps, 1 held in A" in (proofs / "both.html").read_text().replace("\xa0", " ")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--show", "good.json", "--compare", "good.json", "bad.json"], "one of them, found both"),
        (["events", "--show", "good.json"], "step events: expected neither a step nor"),
        (["--show", "good.json", "--minutes", "3"], "--minutes: expected neither"),
        (["--show", "good.json", "--lock-timeout", "1800"], "--lock-timeout: expected neither"),
        (["--compare", "good.json", "bad.json", "--device", "auto"], "--device: expected"),
        (["--device", "banana"], "--device: expected auto, cpu, cuda or cuda:N, found 'banana'"),
        (["--show", "good.json", "-o", "hard.json"], "would overwrite good.json"),
        (["--compare", "good.json", "bad.json", "--format", "json"], "expected terminal or"),
        (["--show", "good.json", "--page", "good.json"], "would overwrite good.json"),
        (["-o", "proof", "--page", "proof"], "would overwrite proof"),
    ],
)
def test_what_contradicts_itself_is_refused_before_the_work(proofs, words, said):
    (proofs / "hard.json").hardlink_to(proofs / "good.json")
    done = typed(*words)

    assert isinstance(done.exception, UsageError)
    assert said in str(done.exception)


def test_a_hostile_proof_is_refused_by_its_place(proofs):
    document = json.loads((proofs / "good.json").read_text())
    document["steps"][0]["step"] = "<script>"
    (proofs / "hostile.json").write_text(json.dumps(document))

    done = typed("--show", "hostile.json")

    assert isinstance(done.exception, InvalidFileError)
    assert "hostile.json" in str(done.exception)
    assert "steps[0]" in str(done.exception)


def test_an_outcome_that_somebody_wrote_into_a_file_is_not_believed(proofs):
    forged = (proofs / "bad.json").read_text().replace("did_not_hold", "held")
    (proofs / "forged.json").write_text(forged)

    shown = typed("--show", "forged.json", "--format", "markdown")

    assert shown.return_value == ExitCode.NO_ANSWER
    assert "the file says: held; its figures do not" in shown.stdout
    assert typed("--compare", "good.json", "forged.json").return_value == ExitCode.NO_ANSWER


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no full device")
def test_a_page_that_cannot_be_written_costs_no_table():
    done = typed("--show", "good.json", "--page", "/dev/full")

    assert isinstance(done.exception, CannotWriteError)
    assert "2 of 2 steps held" in done.stdout
