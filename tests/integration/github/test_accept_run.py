"""`ci-perf accept --run`: from a job on GitHub to files that a person commits."""

import pytest

from ci_perf.baselines import layout
from ci_perf.errors import ExitCode
from tests import repositories
from tests.fakes.github import faults
from tests.fakes.github.fixtures import on_github_and_ghes
from tests.integration.github.second_stage import HEAD, RUN, TOGETHER, slower, steady
from tests.runs import CPU


@pytest.fixture
def at_home(second, monkeypatch):
    """A clone on a laptop, and the token of a person who may only read."""
    for name, value in second.github.environment().items():
        if name in {"GITHUB_API_URL", "GITHUB_REPOSITORY"}:
            monkeypatch.setenv(name, value)
    monkeypatch.setenv("GH_TOKEN", second.github.add_token("alice"))
    return second


def baseline(second):
    return layout.read(layout.path(second.folder / "baselines", CPU, "smoke", "mlp"))


@on_github_and_ghes
@pytest.mark.parametrize("fork", [False, True])
def test_what_a_run_has_uploaded_is_accepted_as_if_it_were_here(at_home, fork):
    at_home.measured(slower(), fork=fork)
    ended = at_home.types("accept", "--run", RUN, "--reason", "it does more")

    assert ended.code == ExitCode.OK
    assert f"measured commit {HEAD[:12]}, branch feature" in ended.err
    assert ("code from a fork" in ended.err) == fork
    assert "next: git add baselines && git commit" in ended.err
    assert [one.run for one in baseline(at_home).sessions] == ["steady", "slower"]
    assert baseline(at_home).sessions[-1].reason == "it does more"


def test_the_rules_of_accepting_are_the_same(at_home):
    at_home.measured(slower())
    ended = at_home.types("accept", "--run", RUN)

    assert ended.code == ExitCode.USAGE
    assert 'say why with --reason "…"' in ended.err
    assert len(baseline(at_home).sessions) == 1


def test_another_artifact_can_be_named(at_home):
    at_home.measured(steady())
    at_home.github.add_artifact(RUN, "ci-perf-h200", b"no archive")
    ended = at_home.types("accept", "--run", RUN, "--artifact", "ci-perf-h200")

    assert ended.code == ExitCode.USAGE
    assert "artifact 'ci-perf-h200' of workflow run 42" in ended.err


def test_the_repository_is_that_of_the_clone(at_home, monkeypatch):
    monkeypatch.delenv("GITHUB_REPOSITORY")
    made = repositories.init(at_home.folder / "clone")
    made.ask("remote", "add", "origin", f"git@github.com:{at_home.github.repository}.git")
    at_home.measured(steady())
    monkeypatch.chdir(made.root)

    assert at_home.types("accept", "--run", RUN).code == ExitCode.OK
    assert (made.root / TOGETHER / "mlp.json").exists()


def test_without_a_token_it_says_where_to_get_one(at_home, monkeypatch):
    monkeypatch.delenv("GH_TOKEN")
    ended = at_home.types("accept", "--run", RUN)

    assert ended.code == ExitCode.USAGE
    assert "gh auth token" in ended.err
    assert at_home.github.requests == []


@pytest.mark.parametrize("fault", ["BAD_CREDENTIALS", "BAD_GATEWAY", "ELSEWHERE"])
def test_no_message_holds_the_token(at_home, fault, monkeypatch, caplog):
    caplog.set_level("DEBUG")
    monkeypatch.setenv("GH_TOKEN", at_home.github.token)
    at_home.measured(slower())
    at_home.github.fail_next("GET", ".", getattr(faults, fault), times=99)
    ended = at_home.types("accept", "--run", RUN)

    assert ended.code == ExitCode.NO_ANSWER
    assert at_home.github.token not in ended.out + ended.err + caplog.text


@pytest.mark.parametrize("words", [[], ["run.json", "--run", RUN]])
def test_a_file_or_a_run_must_be_named_and_not_both(at_home, words):
    with pytest.raises(Exception, match="expected RUN, the file that `ci-perf run` wrote"):
        at_home.types("accept", *words)


def test_a_patch_leaves_the_baselines_alone(at_home):
    at_home.measured(slower())
    ended = at_home.types("accept", "--run", RUN, "--reason", "because", "--patch", "p.patch")

    assert ended.code == ExitCode.OK
    assert "next: git apply p.patch" in ended.err
    assert len(baseline(at_home).sessions) == 1
    assert f"+++ b/{TOGETHER}/mlp.json" in (at_home.folder / "p.patch").read_text()
