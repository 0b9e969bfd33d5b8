"""What a plan for several nodes takes from suite.toml and the baselines."""

import msgspec
import pytest

from ci_perf.baselines import accept, layout
from ci_perf.errors import UsageError
from ci_perf.features.fleet import fleet
from ci_perf.gate.options import MeasureOptions
from ci_perf.judging import compare, summarise
from ci_perf.model.run import Tool
from ci_perf.system import files
from tests import repositories, suites
from tests.features.fleet.work_plans import a_shard, a_unit, a_work_plan
from tests.runs import GPU, STEADY, a_measured, a_run, an_environment

SUITE = """
[suites.smoke]
workloads = [{ workload = "a" }, { workload = "b" }, { workload = "c" }]
"""


@pytest.fixture
def root(tmp_path):
    """A repository with a suite of three workloads."""
    git = repositories.init(tmp_path / "project")
    folder = git.root / "workloads"
    folder.mkdir()
    suites.of("a", "b", "c", where=folder)
    (folder / "suite.toml").write_text(SUITE)
    git.commit()
    git.ask("switch", "--quiet", "--create", "branch")
    git.commit()
    return git.root


def planned(root, *select, **more):
    return fleet.plan(select, root=root, **more)


def recorded(root, launches_s, **machine):
    """Commit a baseline of each workload whose launches took so long."""
    run = a_run(
        *[a_measured(name, *STEADY) for name in launches_s], environment=an_environment(**machine)
    )
    side = summarise.run(run, label="")
    for acceptance in accept.prepare(
        root / "baselines", run, compare.compare(side, side), reason="first"
    ):
        (session,) = acceptance.baseline.sessions
        known = msgspec.structs.replace(session, launch_s=launches_s[acceptance.workload])
        layout.write(
            root / "baselines", msgspec.structs.replace(acceptance.baseline, sessions=(known,))
        )


def parts(plan):
    return [unit.workloads for unit in plan.units]


def test_the_longest_workload_has_a_node_to_itself(root):
    recorded(root, {"a": 10.0, "b": 90.0, "c": 20.0})

    assert parts(planned(root, units=2)) == [("b",), ("a", "c")]


def test_where_classes_differ_their_mean_counts(root):
    recorded(root, {"a": 10.0, "b": 50.0})
    recorded(root, {"a": 110.0, "b": 50.0}, hard=GPU)

    assert fleet.known_launches_s(root / "baselines", "smoke") == {"a": 60.0, "b": 50.0}


def test_sessions_that_know_no_length_are_left_out(root):
    recorded(root, {"a": None, "b": 50.0})

    assert fleet.known_launches_s(root / "baselines", "smoke") == {"b": 50.0}


def test_selected_workloads_alone_are_planned(root):
    plan = planned(root, "a", "c", units=2)

    assert parts(plan) == [("a",), ("c",)]
    assert plan.selection == ("a", "c")


def test_the_same_commit_gives_the_same_plan(root):
    recorded(root, {"a": 10.0, "b": 90.0, "c": 20.0})

    assert planned(root, units=2) == planned(root, units=2)


def test_each_class_measures_the_whole_suite(root):
    plan = planned(root, units=2, machine_class=("h100", "l4"))

    assert [unit.id for unit in plan.units] == [
        "h100-1-of-2",
        "h100-2-of-2",
        "l4-1-of-2",
        "l4-2-of-2",
    ]


def test_a_unit_says_which_workloads_and_against_what(root):
    plan = planned(root, "b", units=1, against="main")

    narrowed = fleet.narrow_options(MeasureOptions(root=root), plan, "1-of-1")

    assert (narrowed.select, narrowed.against, narrowed.unit) == (("b",), "main", "1-of-1")
    # Step time, its CPU time and host memory gate on a CPU.
    assert narrowed.suspects == plan.suspects == 3


def test_all_units_share_the_chance_of_a_false_alarm(root):
    assert planned(root, units=3, against="main").suspects == 9
    assert planned(root, units=3).suspects == 0, "without a base there are no pairs"


@pytest.mark.parametrize(
    ("more", "unit", "message"),
    [
        ({"against": "other"}, "1-of-1", "--against: expected 'main', as it was planned"),
        ({"select": ("a",)}, "1-of-1", "expected no workloads beside it, found 'a'"),
        ({}, "1-of-2", "expected one of the plan, found '1-of-2'.*1-of-1"),
    ],
)
def test_what_is_not_the_unit_that_was_planned_is_refused(root, more, unit, message):
    plan = planned(root, units=1, against="main")

    with pytest.raises(UsageError, match=message):
        fleet.narrow_options(MeasureOptions(root=root, **more), plan, unit)


def test_a_unit_of_another_commit_or_version_is_refused(root):
    plan = planned(root, units=1)
    newer = msgspec.structs.replace(plan, tool=Tool(version="9.9"))

    with pytest.raises(UsageError, match="expected commit"):
        fleet.narrow_options(MeasureOptions(root=root), a_work_plan(), "1-of-1")
    with pytest.raises(UsageError, match=r"expected version of ci-perf '9\.9'"):
        fleet.narrow_options(MeasureOptions(root=root), newer, "1-of-1")


def test_a_file_of_one_node_that_cannot_be_read_does_not_take_the_others_with_it(tmp_path):
    plan = a_work_plan(a_unit("a", id="1-of-2"), a_unit("b", id="2-of-2"))
    files.write(tmp_path / "plan.json", plan)
    good = a_shard(a_run(a_measured("a", *STEADY)), plan.units[0]).run
    (tmp_path / "runs/1-of-2").mkdir(parents=True)
    files.write(tmp_path / "runs/1-of-2/run.json", good)
    (tmp_path / "runs/shard-2-of-2").mkdir()
    (tmp_path / "runs/shard-2-of-2/run.json").write_text('{"type": "run"')
    told = []

    merged = fleet.merge(tmp_path / "runs", plan=tmp_path / "plan.json", notify=told.append)[None]

    assert [each.workload for each in merged.measured] == ["a"]
    assert [each.workload for each in merged.failed] == ["b"]
    assert "shard-2-of-2/run.json: expected a JSON document" in told[0]
    assert "shard-2-of-2/run.json: expected a JSON document" in merged.failed[0].reason
