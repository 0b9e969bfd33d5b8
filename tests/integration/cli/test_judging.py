"""`compare` and `accept`, on runs that were recorded before."""

import csv
import io
import json

import pytest

from ci_perf.errors import ExitCode
from tests import headlines
from tests.histories import beside
from tests.runs import BASE_COMMIT, SLOW, STEADY, a_failed, a_measured, an_evidence


@pytest.mark.parametrize(
    ("head", "proof", "code"),
    [
        (a_measured("w", *STEADY), {}, ExitCode.OK),
        (a_measured("w", *SLOW), {}, ExitCode.NO_ANSWER),
        (a_measured("w", *SLOW), beside(2.0), ExitCode.REGRESSED),
        (a_failed("w", "CUDA error"), {}, ExitCode.NO_ANSWER),
    ],
    ids=["the same", "suspected", "proven", "crashed"],
)
def test_compare_ends_with_the_verdict(project, head, proof, code):
    project.recorded("a.json", a_measured("w", *STEADY), commit=BASE_COMMIT)
    project.recorded("b.json", head, **proof)

    done = project.run("compare", "a.json", "b.json")

    assert done.code == code
    assert done.out.startswith("### ")
    assert "`w`" in done.out


def test_a_person_at_a_terminal_gets_the_form_for_terminals(judged):
    code, shown = judged.run_on_terminal(
        "compare", "a.json", "b.json", stream="stdout", NO_COLOR="1"
    )

    assert code == ExitCode.REGRESSED
    assert shown.startswith(headlines.FAIL.encode())
    assert b"<details>" not in shown


def test_compare_writes_every_form_also_to_a_file(judged):
    def compared(form, *more):
        return judged.run("compare", "a.json", "b.json", "--format", form, *more)

    assert json.loads(compared("json").out)["verdict"] == "regressed"
    rows = list(csv.DictReader(io.StringIO(compared("csv").out)))
    assert rows[0]["verdict"] == "regressed"
    assert "❌ 1 regressed" in compared("terminal").out
    done = compared("markdown", "-o", "report.md")
    assert (done.code, done.out) == (ExitCode.REGRESSED, "")
    assert (judged.root / "report.md").read_text() == compared("markdown").out


def test_compare_uses_the_limits_of_the_suite(project):
    project.workload("w").suite("w", extra="limits = {step_time_s = {limit = 1.0}}\n")
    project.recorded("a.json", a_measured("w", *STEADY))
    project.recorded("b.json", a_measured("w", *SLOW))

    assert project.run("compare", "a.json", "b.json").code == ExitCode.OK


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "found an empty file"),
        ('{"type": "comparison", "schema_version": 1}', "$.type"),
        ('{"schema_version": 7}', "newer ci-perf"),
    ],
)
def test_a_bad_run_file_is_exit_code_2_with_path_and_place(project, content, message):
    project.recorded("a.json", a_measured("w", *STEADY))
    (project.root / "bad.json").write_text(content)

    done = project.run("compare", "a.json", "bad.json")

    assert done.code == ExitCode.USAGE
    assert done.err.splitlines()[-1].startswith("error: bad.json: ")
    assert message in done.err


def test_accept_writes_files_that_the_next_compare_agrees_with(project):
    project.recorded("run.json", a_measured("w", *STEADY))

    assert project.run("compare", "run.json").code == ExitCode.NO_ANSWER
    done = project.run("accept", "run.json")
    again = project.run("accept", "run.json")

    assert done.code == again.code == ExitCode.OK
    assert "created" in done.out
    assert "step time: 1.00 ms" in done.out
    assert "kept" in again.out
    assert project.run("compare", "run.json").code == ExitCode.OK


def test_accept_takes_numbers_of_a_busy_machine_only_by_force(project):
    project.recorded("run.json", a_measured("w", *STEADY, evidence=an_evidence(cpu_pressure=0.93)))

    refused = project.run("accept", "run.json", CI_PERF_ACCEPT_FORCE="0")
    forced = project.run("accept", "run.json", "--force", CI_PERF_ACCEPT_FORCE="0")

    assert refused.code == ExitCode.NO_ANSWER
    assert "tasks waited for a CPU 93% of the timed region" in refused.err
    assert forced.code == ExitCode.OK
    assert "created" in forced.out


def test_accept_refuses_what_must_not_become_a_baseline(project):
    project.recorded("run.json", a_measured("w", *STEADY), id="1")
    project.recorded("slow.json", a_measured("w", *SLOW), id="2")
    project.recorded("failed.json", a_failed("w"))
    project.run("accept", "run.json")
    before = [p.read_bytes() for p in project.root.rglob("baselines/**/*.json")]

    worse = project.run("accept", "slow.json")

    assert worse.code == ExitCode.USAGE
    assert '--reason "…"' in worse.err
    assert project.run("accept", "failed.json").code == ExitCode.NO_ANSWER
    assert [p.read_bytes() for p in project.root.rglob("baselines/**/*.json")] == before

    done = project.run("accept", "slow.json", "--reason", "exact attention")
    assert done.code == ExitCode.OK
    assert "step time: 1.00 ms → 2.00 ms (+100 %)" in done.out


@pytest.mark.parametrize(
    "target", ["b.json", "./a.json", "baselines/x.json", "link.json", "hard.json"]
)
def test_a_report_never_overwrites_what_it_is_made_of(judged, target):
    (judged.root / "link.json").symlink_to("a.json")
    (judged.root / "hard.json").hardlink_to(judged.root / "a.json")
    before = (judged.root / "a.json").read_bytes(), (judged.root / "b.json").read_bytes()

    done = judged.run("compare", "a.json", "b.json", "-o", target)

    assert done.code == ExitCode.USAGE
    assert "would overwrite" in done.err
    assert ((judged.root / "a.json").read_bytes(), (judged.root / "b.json").read_bytes()) == before


def test_pairs_against_another_base_answer_nothing_about_this_one(project):
    """The run was measured beside another commit: its pairs say nothing of the one given here."""
    project.recorded("base.json", a_measured("w", *STEADY), commit="c" * 40)
    project.recorded("head.json", a_measured("w", *SLOW), **beside(1.0))

    done = project.run("compare", "base.json", "head.json")

    assert "its pairs are left alone" in done.err
    assert "not this change" not in done.out
    assert "likely slower" in done.out
