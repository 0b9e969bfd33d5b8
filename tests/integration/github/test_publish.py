"""`github publish` as a whole: exit codes, warnings, the summary, and a token nobody sees."""

import logging
import re
import subprocess
import sys

import pytest

from ci_perf.errors import ExitCode, InvalidFileError, UsageError
from ci_perf.github.actions import MAX_SUMMARY_BYTES
from ci_perf.model.comparison import Verdict
from ci_perf.system import files
from tests import headlines
from tests.comparisons import a_change, a_comparison
from tests.fakes.github import faults
from tests.integration.github.stage import PULL, a_client, fine, worse

FAULTS = {
    "bad credentials": faults.BAD_CREDENTIALS,
    "not accessible": faults.NOT_ACCESSIBLE,
    "not found": faults.NOT_FOUND,
    "unicorn": faults.BAD_GATEWAY,
    "rate limit": faults.rate_limited(),
    "secondary limit": faults.secondary_limit(3_000),
    "secondary limit without an end": faults.secondary_limit(),
    "too many": faults.too_many_requests(3_000),
    "too many without an end": faults.too_many_requests(),
    "cut JSON": faults.CUT_JSON,
    "cut body": faults.CUT_BODY,
    "reset": faults.RESET,
    "elsewhere": faults.ELSEWHERE,
}


@pytest.fixture
def everything_is_logged(caplog):
    """What any library could write to a log."""
    caplog.set_level(logging.DEBUG)
    return caplog


def test_a_base_branch_that_is_changed_while_the_job_runs_is_not_the_one_that_was_judged(on_pull):
    on_pull.github.add_pull(PULL, base_branch="old-and-slow")
    on_pull.on_pull()
    on_pull.github.add_pull(PULL, base_branch="main")
    on_pull.publish("--check")

    (body,) = on_pull.bodies()
    assert "Judged for the branch `old-and-slow`" in body
    assert on_pull.github.checks("a" * 40)[0].output["title"].endswith(" · for old-and-slow")


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_whatever_github_does_the_verdict_stands_unless_a_report_is_required(
    on_pull, everything_is_logged, fault
):
    on_pull.github.fail_next("GET", ".", fault, times=199)
    on_pull.github.fail_next("POST", ".", fault, times=199)
    for comparison in (fine(), worse()):
        ended = on_pull.publish("--check", of=[comparison])

        assert ended.code == comparison.exit_code
        assert "::warning title=ci-perf::not reported: pull request 7: " in ended.err
        assert "ci_perf" in on_pull.summary
        assert "bug in ci-perf" not in ended.err
        assert on_pull.github.token not in ended.out + ended.err + everything_is_logged.text
    assert on_pull.publish("--require-report", of=[worse()]).code == ExitCode.NO_ANSWER


def test_a_report_that_is_required_and_shown_leaves_the_verdict(on_pull):
    assert on_pull.publish("--require-report", of=[worse()]).code == ExitCode.REGRESSED


def test_a_token_that_may_not_comment_says_what_to_do(on_pull):
    on_pull.github.read_only()
    ended = on_pull.publish()

    assert "GitHub answered 403 (Resource not accessible by integration)" in ended.err
    assert "no permission" in ended.err
    assert "fork" in ended.err


def test_a_private_repository_that_the_token_does_not_see_is_not_found(on_pull):
    on_pull.github.make_private()
    on_pull.environment(GITHUB_TOKEN=on_pull.github.add_token("stranger"))
    ended = on_pull.publish()

    assert ended.code == ExitCode.OK
    assert "does GITHUB_TOKEN belong to this repository?" in ended.err


def test_no_representation_has_the_token_and_without_one_it_is_said_how_to_give_it(on_pull):
    client = a_client(on_pull.github)
    assert on_pull.github.token not in f"{client!r} {vars(client)!r}"
    on_pull.monkeypatch.delenv("GITHUB_TOKEN")
    ended = on_pull.publish()

    assert ended.code == ExitCode.OK
    assert "GITHUB_TOKEN: expected the token of the job, found none" in ended.err
    assert on_pull.summary


def test_without_pygithub_it_is_said_what_to_install(on_pull):
    on_pull.monkeypatch.setitem(sys.modules, "github", None)

    assert "pip install 'ci-perf[report]'" in on_pull.publish().err


def test_an_address_that_is_no_api_is_a_warning(on_pull):
    on_pull.environment(GITHUB_API_URL=on_pull.github.server_url + "/nowhere")
    ended = on_pull.publish()

    assert ended.code == ExitCode.OK
    assert "::warning" in ended.err
    on_pull.github.violations.clear()


def test_a_proxy_that_refuses_is_a_warning_without_its_password(on_pull):
    for name in ("NO_PROXY", "no_proxy"):
        on_pull.monkeypatch.delenv(name, raising=False)
    on_pull.environment(HTTP_PROXY="http://me:s3cret@127.0.0.1:9", http_proxy="http://127.0.0.1:9")
    ended = on_pull.publish()

    assert ended.code == ExitCode.OK
    assert "no answer (ProxyError)" in ended.err
    assert "s3cret" not in ended.err


def test_a_bug_of_ours_changes_no_verdict_and_shows_no_token(on_pull):
    def boom(*_, **__):
        raise RuntimeError(f"with {on_pull.github.token}")

    # A bug: there is no input that makes one.
    on_pull.monkeypatch.setattr("ci_perf.github.report_comment.find", boom)
    ended = on_pull.publish(of=[worse()])

    assert ended.code == ExitCode.REGRESSED
    assert "this is a bug in ci-perf" in ended.err
    assert "with ***" in ended.err
    assert on_pull.github.token not in ended.err


def test_later_steps_are_told_how_it_came_out(on_pull):
    on_pull.publish(of=[worse()])

    told = dict(
        re.findall(r"^(.+)<<(?:ci_perf_\w+)\n(.*)\nci_perf_", on_pull.outputs, re.MULTILINE)
    )
    assert told["verdict"] == "regressed"
    assert told["exit-code"] == "1"
    assert told["comment-url"].startswith(on_pull.github.server_url)


def test_the_summary_has_every_row_that_the_comment_has_no_room_for(on_pull):
    rows = [a_change(f"w{n}", Verdict.REGRESSED, ratio=1.1) for n in range(900)]
    on_pull.publish(of=[a_comparison(*rows)])

    assert on_pull.summary.count("`<br>step time |") == 900
    assert on_pull.bodies()[0].count("`<br>step time |") < 900


def test_a_summary_that_is_nearly_full_gets_what_has_room(on_pull):
    (on_pull.folder / "summary.md").write_text("x" * (MAX_SUMMARY_BYTES - 12_000) + "\n")
    rows = [a_change(f"w{n}", Verdict.REGRESSED, ratio=1.1) for n in range(400)]
    ended = on_pull.publish(of=[a_comparison(*rows)])

    assert "::warning" not in ended.err
    assert "400 workloads" in on_pull.summary
    assert len(on_pull.summary.encode()) <= MAX_SUMMARY_BYTES


def test_a_summary_that_is_full_is_a_warning(on_pull):
    (on_pull.folder / "summary.md").write_text("x" * MAX_SUMMARY_BYTES)

    assert "the job summary: expected at most" in on_pull.publish().err
    assert len(on_pull.bodies()) == 1


def test_an_exit_code_that_no_judge_gives_is_refused(on_pull):
    with pytest.raises(InvalidFileError, match="expected 0, 1 or 3, found 130"):
        on_pull.publish(of=[fine(exit_code=130)])


def test_one_key_for_two_suites_is_wrong_use(on_pull):
    with pytest.raises(UsageError, match="comparisons of one suite"):
        on_pull.publish("--key", "x", of=[fine(suite="smoke"), fine(suite="standard")])


def test_what_is_shown_in_a_plain_shell_needs_no_network(tmp_path):
    files.write(tmp_path / "c.json", worse())
    probe = (
        "import sys\n"
        "from ci_perf.cli import main as front\n"
        "sys.argv = ['ci-perf', 'github', 'publish', 'c.json', '--check']\n"
        "try:\n    front.main()\n"
        "except SystemExit as end:\n    assert end.code == 1, end.code\n"
        "sys.exit(', '.join({'github', 'requests', 'torch'} & sys.modules.keys()) or 0)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", probe],
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": ":".join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr


def test_the_command_line_ends_with_the_verdict(tmp_path, github):
    """As a job calls it: another process, with nothing replaced."""
    github.add_pull(PULL)
    files.write(tmp_path / "c.json", worse())
    event = tmp_path / "event.json"
    event.write_bytes(b'{"ref": "refs/heads/x", "repository": {"default_branch": "main"}}')
    done = subprocess.run(
        [sys.executable, "-m", "ci_perf", "github", "publish", "c.json", "--check"],
        cwd=tmp_path,
        env={
            "PATH": "/usr/bin:/bin",
            "PYTHONPATH": ":".join(filter(None, sys.path)),
            **github.environment(),
            "GITHUB_EVENT_NAME": "push",
            "GITHUB_EVENT_PATH": str(event),
            "GITHUB_SHA": "a" * 40,
        },
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == ExitCode.REGRESSED, done.stderr
    assert done.stdout.startswith(f"ci-perf: standard on nvidia-h200: {headlines.FAIL}")
    assert [one.conclusion for one in github.checks("a" * 40)] == ["failure"]
    assert github.token not in done.stdout + done.stderr
