"""Pull requests that change baselines: seen to, and judged by the bar that was there before."""

import re
import shutil

import pytest

from ci_perf.errors import ExitCode
from ci_perf.report.sheet import Label
from tests import headlines, repositories
from tests.fakes.github.fixtures import on_github_and_ghes
from tests.integration.github.second_stage import (
    HEAD,
    TOGETHER,
    broken,
    committed,
    slower,
    steady,
)
from tests.runs import GPU, an_environment

MLP = f"{TOGETHER}/mlp.json"


def with_a_higher_bar(second, *, fork=False):
    """A pull request that accepts its own numbers."""
    moved = committed(second.folder / "moved", steady(), broken())
    second.opened(fork=fork, files=moved)
    return second.measured(broken(), fork=fork)


@on_github_and_ghes
@pytest.mark.parametrize("fork", [False, True])
def test_a_pull_request_that_raises_its_own_bar_is_seen_to_and_judged_by_both(second, fork):
    ended = with_a_higher_bar(second, fork=fork).report()

    assert ended.code == ExitCode.REGRESSED
    assert "✏️ This pull request changes 1 baseline" in second.body
    first, _, rest = second.body.partition("own it would be: ")
    assert "`mlp` graph breaks +3" in headlines.named_after(f"### {headlines.FAIL}", first)
    assert rest.startswith(headlines.PASS)
    assert "- own regression accepted: `mlp` graph breaks 0 → 3, because: `because`" in second.body


def test_the_first_baselines_are_said_to_be_the_first_ones(second):
    second.opened(base={}, files=committed(second.folder / "first", steady()))
    ended = second.measured(steady()).report()

    assert ended.code == ExitCode.NO_ANSWER
    assert f"### {headlines.NO_ANSWER}{Label.FIRST.value}" in second.body
    assert "This change adds the first baselines: `mlp`." in second.body
    assert re.search(r"🆕 `mlp` \| .*1\.00\sms \| accepted", second.body)
    assert "ci-perf accept run.json" not in second.body


def test_a_baseline_of_another_machine_is_not_the_first_one_of_this(second):
    elsewhere = steady(environment=an_environment(hard=GPU))
    second.opened(base={}, files=committed(second.folder / "first", elsewhere))
    second.measured(steady()).report()

    assert f"{headlines.NO_ANSWER}{Label.NEW.value}: `mlp`" in second.body


def test_a_baseline_that_cannot_be_read_is_named_all_the_same(second):
    second.opened(files={MLP: b'{"headline": {"@octo": 1}}'})
    second.measured(slower()).report()

    assert f"✏️ This pull request changes 1 baseline (`{MLP}`)" in second.body
    assert "Not reported: `what baselines become; the log says why`" in second.body
    assert "with its own it would be" not in second.body
    assert "/tmp" not in second.body


def test_a_baseline_that_is_removed_is_named_as_a_change_of_the_gate(second):
    second.opened(files={MLP: None})
    second.measured(slower()).report()

    assert "- baseline removed: `mlp`" in second.body


def test_other_files_of_a_pull_request_are_no_baselines(second):
    below = [f"{TOGETHER}/{name}" for name in ("README.md", "programs/mlp.json")]
    files = ["code.py", "baselines/README.md", "other/a/b/c.json", *below]
    second.opened(files=dict.fromkeys(files, "{}"))
    second.measured(slower()).report()

    assert "✏️" not in second.body


def test_publish_says_that_baselines_are_edited_too(second):
    with_a_higher_bar(second)
    second.stage.on_pull().publish()

    assert "✏️ This pull request changes 1 baseline" in second.body
    assert "uses the baselines of the job that measured" in second.body


def test_a_comment_is_begun_where_baselines_are_edited_though_nothing_changed(second):
    with_a_higher_bar(second)
    second.stage.on_pull().publish("--skip-if-unchanged")

    assert "✏️" in second.body


def test_the_base_may_be_checked_out_below_another_folder(second):
    """Paths in a pull request begin at the top of the repository, wherever that lies here."""
    with_a_higher_bar(second)
    made = repositories.init(second.folder / "base")
    shutil.copytree(second.folder / "baselines", made.root / "baselines")
    second.report("--baselines", "base/baselines")

    assert "✏️ This pull request changes 1 baseline" in second.body
    assert "with its own it would be" in second.body
    assert "git add baselines && git commit" in second.body


def test_a_check_says_that_baselines_are_edited_too(second):
    with_a_higher_bar(second).report("--no-comment", "--check")
    (check,) = second.github.checks(HEAD)

    assert "✏️ This pull request changes 1 baseline" in check.output["summary"]


SUITE = """
[suites.smoke]
fail_on = "{fail_on}"
limits = {{ graph_breaks = {{ gate = {gate} }} }}
[[suites.smoke.workloads]]
workload = "mlp"
"""
STRICT = SUITE.format(fail_on="proven", gate="true")
MILD = SUITE.format(fail_on="never", gate="false")
SUITE_FILE, WORKLOAD = "workloads/suite.toml", "workloads/mlp.py"


def with_another_suite(second, text=MILD, *, run=None, workload="# slower"):
    """A pull request that changes suite.toml and the file of its workload, on a base with both."""
    base = committed(second.folder / "seed", steady())
    base |= {SUITE_FILE: STRICT.encode(), WORKLOAD: b"# a workload"}
    second.opened(base=base, files={SUITE_FILE: text.encode(), WORKLOAD: workload.encode()})
    return second.measured(run or steady())


def test_the_comment_and_the_check_say_what_the_head_does_to_the_gate(second):
    ended = with_another_suite(second).report("--check", "--skip-if-unchanged")
    (check,) = second.github.checks(HEAD)

    assert ended.code == ExitCode.OK
    for text in (second.body, check.output["summary"]):
        assert "gate switched off: `mlp`" in headlines.named_after(headlines.GATE_CHANGED, text)
        assert "- fail_on milder: `proven` → `never`" in text
        assert "- workload file changed (numbers of different work): `mlp`" in text
        assert "No action needed" not in text
    assert check.conclusion == "neutral"
    assert check.output["title"].startswith(headlines.GATE_CHANGED)


def test_the_gate_of_the_base_judges_although_the_head_switches_it_off(second):
    ended = with_another_suite(second, run=broken()).report()

    assert ended.code == ExitCode.REGRESSED
    assert "`mlp` graph breaks +3" in headlines.named_after(f"### {headlines.FAIL}", second.body)
    assert "- gate switched off: `mlp` graph breaks" in second.body


def test_a_suite_of_the_head_that_cannot_be_read_is_said_to_be_unknown(second):
    with_another_suite(second, "[suites.smoke").report()

    assert "Not reported: `changes of the gate: " in second.body
    assert "/tmp" not in second.body


def test_an_unchanged_suite_is_no_change_of_the_gate(second):
    with_another_suite(second, STRICT, workload="# a workload").report()

    assert "changes the gate" not in second.body


def test_the_suite_may_be_checked_out_below_another_folder(second):
    with_another_suite(second)
    made = repositories.init(second.folder / "base")
    for name in ("baselines", "workloads"):
        shutil.copytree(second.folder / name, made.root / name)
    second.report("--baselines", "base/baselines", "--workloads", "base/workloads")

    assert "- fail_on milder: `proven` → `never`" in second.body
