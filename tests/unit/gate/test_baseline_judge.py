"""What the committed baselines say of a run, before the base is launched and after each pair."""

import shutil

import msgspec
import pytest

from ci_perf import session
from ci_perf.baselines.accept import Mode
from ci_perf.gate.commit_suite import RepositoryFolders
from ci_perf.gate.compare import BaselineJudge
from ci_perf.judging.policy import SCREENED_LAUNCHES
from tests import repositories
from tests.accepting import accepted
from tests.histories import DAYS, a_pair, in_turns, pairs, scaled
from tests.projects import Project
from tests.runs import SLOW, STEADY, a_measured, a_run
from tests.sessions import a_plan_at


@pytest.fixture
def root(tmp_path):
    """A repository with a suite and the baseline of one workload, of several days."""
    project = Project(tmp_path / "head")
    repositories.init(project.root)
    project.workload("mlp").suite("mlp")
    for number, day in enumerate(DAYS):
        run = a_run(a_measured("mlp", *scaled(STEADY, day)), id=f"day-{number}")
        accepted(project.root / "baselines", run, mode=Mode.APPEND, reason="Another day")
    return project.root


def judge(root, base="", baselines=None, sharing=0, **more):
    folders = RepositoryFolders(
        root=root, workloads=root / "workloads", baselines=baselines or root / "baselines"
    )
    return BaselineJudge(base, folders, sharing, **more)


def test_a_workload_as_fast_as_its_baseline_needs_no_base(root):
    assert judge(root).undecided(a_run(a_measured("mlp", *STEADY)))[0] == {}


def test_the_history_says_how_often_the_head_is_launched_before_pairs(root):
    plan = a_plan_at(root, "mlp", "new")
    machine = a_run(a_measured("mlp", *STEADY)).environment.hard

    found = judge(root).first_launches(plan, machine)

    assert found["new"] == SCREENED_LAUNCHES
    assert 1 <= found["mlp"] <= SCREENED_LAUNCHES


def test_a_judge_is_blind_as_long_as_no_workload_has_a_baseline(root):
    plan = a_plan_at(root, "mlp", "new")
    machine = a_run(a_measured("mlp", *STEADY)).environment.hard

    assert not judge(root).is_blind(plan, machine)
    assert judge(root, baselines=root / "others").is_blind(plan, machine)


def test_beside_a_base_in_another_environment_no_baseline_says_anything(root):
    plan = a_plan_at(root, "mlp", "new")
    run = a_run(a_measured("mlp", *STEADY))

    asked = judge(root, has_history=False)

    assert asked.is_blind(plan, run.environment.hard)
    # As many as where nothing is known of any: pairs alone decide.
    assert asked.first_launches(plan, run.environment.hard) == {"mlp": 1, "new": 1}
    assert list(asked.undecided(run)[0]) == ["mlp"]


def test_a_slower_workload_is_a_suspect_by_the_baselines_of_the_first_question(root):
    asked = judge(root)
    slower = a_run(a_measured("mlp", *SLOW))
    first = asked.undecided(slower)
    shutil.rmtree(root / "baselines")

    assert (list(first[0]), first[1]) == (["mlp"], 1)
    assert asked.undecided(slower) == first


def test_a_unit_launches_pairs_until_they_prove_it_among_all_that_other_nodes_may_suspect(root):
    close = [a_pair(1e-3, s) for s in (1.06e-3, 1.08e-3, 1.1e-3) * 2]
    slower = in_turns(a_run(a_measured("mlp", *SLOW)), close, workload="mlp", suspects=1)

    assert judge(root).undecided(slower)[0] == {}
    assert list(judge(root, sharing=100).undecided(slower)[0]) == ["mlp"]


def test_pairs_say_what_has_moved(root):
    def moved(ratio):
        run = a_run(a_measured("mlp", *(second * ratio for second in STEADY)))
        paired = in_turns(run, pairs(ratio), workload="mlp")
        return session.find_moved(paired, judge(root).verdict(paired))

    assert moved(1.2) == moved(0.8) == ["mlp"]
    assert moved(1.0) == []
    unpaired = a_run(a_measured("mlp", *SLOW))
    assert session.find_moved(unpaired, judge(root).verdict(unpaired)) == []


def test_numbers_and_limits_are_those_of_the_base_whatever_the_head_says(root):
    git = repositories.Repository(root)
    base = git.commit()
    shutil.rmtree(root / "baselines")
    suite = root / "workloads/suite.toml"
    suite.write_text(suite.read_text() + "limits = { step_time_s = { gate = false } }\n")
    slower = a_run(a_measured("mlp", *SLOW))

    assert judge(root, base).undecided(slower)[1] == 1
    assert judge(root).undecided(slower)[1] == 1


def named(run):
    return run.suite, run.environment.hard


def test_what_the_head_has_accepted_is_named_and_read_from_it(root):
    git = repositories.Repository(root)
    base = git.commit()
    slower = a_run(a_measured("mlp", *SLOW), id="slower")
    asked = judge(root, base)

    assert asked.accepted(*named(slower)) == {}
    accepted(root / "baselines", slower, reason="exact attention")
    assert "step_time_s" in judge(root, base).accepted(*named(slower))["mlp"]
    by_base, by_head = (
        next(row for row in asked.verdict(slower).rows if row.metric == "step_time_s")
        for asked in (judge(root, base), judge(root))
    )
    assert (by_base.verdict, by_base.base) == (by_head.verdict, by_head.base)


def test_a_base_without_baselines_has_no_history_and_accepts_nothing(root):
    git = repositories.Repository(root)
    shutil.move(root / "baselines", root.parent / "kept")
    base = git.commit()
    shutil.move(root.parent / "kept", root / "baselines")
    run = a_run(a_measured("mlp", *STEADY))

    assert judge(root, base).accepted(*named(run)) == {}
    assert list(judge(root, base).undecided(run)[0]) == ["mlp"]


def test_baselines_outside_of_the_repository_are_the_same_for_both_sides(root, tmp_path):
    base = repositories.Repository(root).commit()
    outside = shutil.copytree(root / "baselines", tmp_path / "elsewhere")
    run = a_run(a_measured("mlp", *STEADY))

    assert judge(root, base, outside).accepted(*named(run)) == {}


def test_a_judge_asked_after_each_pair_says_what_one_says_that_is_asked_once(root):
    shutil.rmtree(root / "baselines")
    names = ("same", "slower", "unlaunched")
    fresh = a_run(*(a_measured(name, *STEADY) for name in names))
    asked = judge(root)
    assert list(asked.undecided(fresh)[0]) == list(names)
    launched, so_far = {"same": [], "slower": []}, fresh

    for number in range(6):
        for name, ratio in (("same", 1.0), ("slower", 1.5)):
            launched[name].append(pairs(ratio)[number])
            so_far = fresh
            for each, its_pairs in launched.items():
                so_far = in_turns(so_far, its_pairs, workload=each, suspects=len(names))

            assert asked.undecided(so_far)[0] == judge(root).undecided(so_far)[0]

    assert list(asked.undecided(so_far)[0]) == ["unlaunched"]
    crashed = msgspec.structs.replace(so_far, measured=so_far.measured[:2])
    assert asked.undecided(crashed)[0] == {}
