"""Check runs."""

import pytest

from ci_perf.errors import ExitCode
from ci_perf.github import checks
from ci_perf.github.checks import Annotation, CheckRun, Conclusion
from ci_perf.model.comparison import Verdict
from ci_perf.model.explanation import Explanation
from ci_perf.model.gate_change import GateChange, GateKind
from tests import headlines
from tests.comparisons import a_change, a_comparison, a_numerics, an_uncompared
from tests.fakes.github import faults
from tests.fakes.github.fixtures import on_github_and_ghes
from tests.integration.github.stage import PULL, a_client, fine, worse
from tests.runs import CPU, GPU
from tests.step_profiles import a_cause, a_function

HEAD = "a" * 40
CREATE = r"/check-runs$"


@pytest.fixture
def on_pull(stage):
    """A job of a pull request that changes two files of workloads."""
    files = {"workloads/mlp.py": "x", "workloads/bert.py": "y", "README.md": "z"}
    stage.github.add_pull(PULL, head_sha=HEAD, files=files)
    return stage.on_pull()


@pytest.fixture
def client(stage):
    stage.github.add_pull(PULL, head_sha=HEAD)
    return a_client(stage.github)


def a_check(**more):
    plain = {"name": "ci-perf", "identity": "1/1", "conclusion": Conclusion.NEUTRAL, "title": "t"}
    return CheckRun(**{**plain, "summary": "s", **more})


def undecided():
    return a_comparison(a_change(verdict=Verdict.INCONCLUSIVE))


def failed():
    return a_comparison(an_uncompared(verdict=Verdict.FAILED))


@pytest.mark.parametrize(
    ("comparison", "conclusion"),
    [
        (fine(), "success"),
        (worse(), "failure"),
        (undecided(), "neutral"),
        (failed(), "failure"),
        (fine(gate_changes=(GateChange(kind=GateKind.REMOVED, workload="x"),)), "neutral"),
        (a_comparison(a_change(), a_numerics()), "neutral"),
    ],
    ids=["fine", "regressed", "inconclusive", "failed", "another gate", "other numerics"],
)
def test_a_check_says_what_the_exit_code_says(on_pull, comparison, conclusion):
    ended = on_pull.publish("--check", of=[comparison])

    (made,) = on_pull.github.checks(HEAD)
    assert made.conclusion == conclusion
    assert ended.code == comparison.exit_code


@pytest.mark.parametrize("comparison", [fine, worse])
def test_a_paused_check_passes_and_says_until_when_and_what_it_would_have_said(on_pull, comparison):
    paused = comparison(paused_until="2026-12-08")
    ended = on_pull.publish("--check", of=[paused])

    (made,) = on_pull.github.checks(HEAD)
    word = "❌ Fail: slower" if paused.exit_code else "✅ Pass: no regression"
    said = f"Paused until 2026-12-08 (green job), else {word}"
    assert made.conclusion == "neutral"
    assert all(said in text for text in (made.output["title"], on_pull.summary, *on_pull.bodies()))
    assert ended.code == 0
    assert f"\n{paused.exit_code}\n" in on_pull.outputs


@on_github_and_ghes
def test_a_check_is_in_progress_first_and_completed_then(on_pull):
    on_pull.publish("--check", of=[worse()])

    (made,) = on_pull.github.checks(HEAD)
    assert [status for status, _ in made.history] == ["in_progress", "completed"]
    assert made.name == "ci-perf: standard on nvidia-h200"
    assert "mlp" in headlines.named_after(headlines.FAIL, made.output["title"])
    assert "| Workload |" in made.output["summary"]


def test_each_machine_has_a_check_of_its_own(on_pull):
    on_pull.publish("--check", of=[worse(machine=GPU), fine(machine=CPU)])

    names = {one.name for one in on_pull.github.checks(HEAD)}
    assert len(names) == 2


def test_a_cause_is_shown_at_its_line_of_a_file_that_the_pull_request_changes(on_pull):
    def cause(file, line):
        place = a_function("Net.forward", 10, file)
        return a_cause("new", "", ("new", "aten::sin", 0, 4), place=place, line=line, calls=(0, 4))

    causes = (cause("workloads/mlp.py", 12), cause("other.py", 3), cause("README.md", 2**63 - 1))
    explained = Explanation(causes=causes)
    rows = [a_change("w", Verdict.REGRESSED, ratio=1.1, explanation=explained)]
    on_pull.publish("--check", of=[a_comparison(*rows)])

    (made,) = on_pull.github.checks(HEAD)
    first, second = made.annotations
    assert (first["path"], first["start_line"], first["end_line"]) == ("workloads/mlp.py", 12, 12)
    assert first["message"] == "new: aten::sin; 0 → 4 per step"
    assert first["title"] == "ci_perf: Why w is 10.0 % slower: what a step does differently"
    assert (second["path"], second["start_line"]) == ("README.md", 2**31 - 1)


def test_the_job_may_report_again_without_a_second_check(on_pull):
    on_pull.publish("--check")
    on_pull.publish("--check")

    assert len(on_pull.github.checks(HEAD)) == 1


def test_another_attempt_is_another_check(on_pull):
    on_pull.publish("--check")
    on_pull.on_pull(attempt=2).publish("--check")

    assert len(on_pull.github.checks(HEAD)) == 2


@pytest.mark.parametrize(
    ("method", "fault"), [("POST", "BAD_GATEWAY"), ("PATCH", "RESET"), ("GET", "BAD_GATEWAY")]
)
def test_what_goes_wrong_once_is_made_good(client, github, fault, method):
    github.fail_next(method, "check-runs", getattr(faults, fault))
    checks.put_check(client, HEAD, a_check())

    (made,) = github.checks(HEAD)
    assert made.status == "completed"


def test_an_answer_that_is_lost_makes_no_second_check(client, github):
    github.fail_next("POST", CREATE, faults.BAD_GATEWAY.after_the_work())
    checks.put_check(client, HEAD, a_check())

    assert len(github.checks(HEAD)) == 1


def test_what_is_too_long_is_cut_to_what_github_takes(client, github):
    causes = [Annotation(path="a.py", line=n, title="t", message="m") for n in range(1, 61)]
    check = a_check(title="ü" * 400, summary="x" * 70_000, annotations=causes)
    checks.put_check(client, HEAD, check)

    (made,) = github.checks(HEAD)
    assert len(made.annotations) == 50
    assert len(made.output["title"]) == 255
    assert len(made.output["summary"]) == checks.MAX_CHARS


def test_without_permission_for_checks_the_comment_is_there_all_the_same(on_pull):
    on_pull.github.permissions = {**on_pull.github.permissions, "checks": "none"}
    ended = on_pull.publish("--check", "--require-report")

    assert len(on_pull.bodies()) == 1
    assert "::warning title=ci-perf::not reported: check" in ended.err
    assert ended.code == ExitCode.NO_ANSWER
