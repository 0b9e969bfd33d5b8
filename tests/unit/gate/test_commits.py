"""Lines of commits in real repositories."""

import contextlib
import dataclasses
import re

import pytest

from ci_perf import worktree
from ci_perf.errors import EngineError, InvalidFileError, UsageError
from ci_perf.gate import commits, lab
from ci_perf.gate.commits import CommitPrograms
from ci_perf.gate.options import MeasureOptions
from ci_perf.judging import policy
from ci_perf.launch import local
from ci_perf.launch.local import LocalLauncher
from ci_perf.model.suite import Setup
from ci_perf.session import Listener
from ci_perf.system.signals import Interrupts
from tests import repositories
from tests.plans import a_plan, a_planned
from tests.projects import Project
from tests.runs import CPU

pytestmark = pytest.mark.usefixtures("lone_git")


@pytest.fixture
def merged(tmp_path):
    """One commit, a branch of two that is merged, one more commit; each with a tag."""
    made = repositories.init(tmp_path / "project")
    made.commit(a_py="0")
    made.ask("tag", "first")
    made.ask("checkout", "--quiet", "-b", "side")
    made.commit(a_py="1")
    made.ask("tag", "brought")
    made.ask("checkout", "--quiet", "main")
    made.ask("merge", "--quiet", "--no-ff", "--message=Merge `it` — ü", "side")
    made.commit(a_py="2")
    return made


def test_a_line_has_a_merge_and_not_what_it_brought(merged):
    line = commits.between(merged.root, "first", "main")

    expected = merged.ask("log", "--first-parent", "--reverse", "--format=%H").split()
    assert [each.commit.id for each in line.commits] == expected
    assert [len(each.parents) for each in line.commits] == [0, 2, 1]
    assert line.commits[1].commit.title == "Merge `it` — ü"
    assert line.shown(1) == f"{expected[1][:12]} Merge `it` — ü"


@pytest.mark.parametrize(
    ("first", "last", "said"),
    [
        ("main", "main", "expected two commits, found the same one"),
        ("main", "first", "name them the other way round"),
        ("brought", "main", "found a commit of a merged branch"),
        ("nothing", "main", "nothing: expected a branch, tag or commit"),
        ("-x", "main", "-x: expected a branch, tag or commit"),
    ],
)
def test_what_is_no_line_is_wrong_use(merged, first, last, said):
    with pytest.raises(UsageError, match=said):
        commits.between(merged.root, first, last)


def test_another_history_is_wrong_use(merged):
    merged.ask("checkout", "--quiet", "--orphan", "other")
    merged.commit(b_py="3")

    with pytest.raises(UsageError, match="expected an ancestor of other"):
        commits.between(merged.root, "main", "other")


def test_a_commit_without_a_first_line_keeps_the_others_in_their_places(merged):
    merged.ask("commit", "--quiet", "--allow-empty", "--allow-empty-message", "--message=")
    merged.commit(a_py="4")

    titles = [each.commit.title for each in commits.between(merged.root, "first", "main").commits]

    assert titles == ["more", "Merge `it` — ü", "more", "", "more"]


@pytest.fixture
def programs(merged):
    Project(merged.root).workload("w").suite("w")
    merged.commit(a_py="3")
    (merged.root / "workloads/suite.toml").write_text("[suites.smoke]\nworkloads = 1\n")
    merged.commit(a_py="4")
    line = commits.between(merged.root, "main~1", "main")
    return CommitPrograms(line, MeasureOptions(root=merged.root, suite="smoke"), notify=print)


def test_a_suite_is_planned_as_a_commit_has_it(programs):
    plan = programs.plan(0)

    assert [each.id for each in plan.workloads] == ["w"]
    assert programs.plan(0) is plan
    on_cpu = policy.limits_on(CPU)
    assert programs.plan(0, on_cpu).limits != plan.limits
    assert programs.plan(0, on_cpu) is programs.plan(0, on_cpu)


def test_a_suite_that_says_nothing_is_named_by_its_commit(programs):
    name = re.escape(programs.line.id(1)[:12])

    with pytest.raises(InvalidFileError, match=rf"^{name}: workloads/suite\.toml: \$\.suites"):
        programs.plan(1)


def test_variables_lead_into_the_commit_that_is_measured(tmp_path, monkeypatch):
    git = repositories.forked(tmp_path / "app")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(git.root))

    with worktree.commit_of(git.root, "main") as checkout:
        options = commits.options_of(MeasureOptions(root=git.root), checkout)
        plan = a_plan(a_planned("w"), root=str(checkout.root))
        with lab.open(plan, options, print, Listener()) as opened:
            said = opened.launcher.shell(
                "cat $GITHUB_WORKSPACE/code.py; echo; pwd",
                root=checkout.root,
                variables={},
                timeout_s=60,
            )

    code = git.ask("show", "main:code.py")
    assert said.tail.split() == [code, str(checkout.root)]


class _Refusing(LocalLauncher):
    """Launches no setup of the base: its engine refuses."""

    def shell(self, command, *, variables, **more):
        if "base" in variables.values():
            raise EngineError("docker: expected a running daemon, found none")
        return super().shell(command, variables=variables, **more)


def test_a_machine_that_refuses_the_setup_of_a_base_is_no_trouble_of_the_base(
    tmp_path, monkeypatch
):
    git = repositories.forked(tmp_path / "app")
    plan = a_plan("w", root=str(git.root), setup=Setup(command="true", timeout_s=60))
    refusing = _Refusing(git.root)
    monkeypatch.setattr(local, "launcher", lambda *_: contextlib.nullcontext(refusing))

    with worktree.commit_of(git.root, "main", has_setup=True) as base:
        of_base = dataclasses.replace(base, plan=plan)
        opened = lab.open_with_base(
            of_base, plan, MeasureOptions(root=git.root), Interrupts(), print, Listener()
        )
        with pytest.raises(EngineError, match="expected a running daemon"), opened:
            pass
