"""What a plan for several nodes takes from suite.toml and the baselines."""

import msgspec
import pytest

from ci_perf import suite
from ci_perf.baselines import accept, layout
from ci_perf.errors import UsageError
from ci_perf.gate import shards
from ci_perf.gate.measure import MeasureOptions
from ci_perf.gate.shards import MergeOptions, ShardOptions
from ci_perf.judging import compare, summarise
from ci_perf.system import files
from tests import repositories, suites
from tests.accepting import accepted
from tests.comparisons import an_interleaved
from tests.histories import DAYS, scaled
from tests.runs import GPU, STEADY, a_measured, a_run, an_environment
from tests.work_plans import a_shard, a_unit, a_work_plan

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


def options(root, **more):
    return ShardOptions(
        root=root, workloads=root / "workloads", baselines=root / "baselines", **more
    )


def planned(root, **more):
    return shards.plan(options(root, **more), notify=lambda _text: None)


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

    assert parts(planned(root, shards=2)) == [("b",), ("a", "c")]


def test_where_classes_differ_their_mean_counts(root):
    recorded(root, {"a": 10.0, "b": 50.0})
    recorded(root, {"a": 110.0, "b": 50.0}, hard=GPU)

    assert shards.known_launches_s(root / "baselines", "smoke") == {"a": 60.0, "b": 50.0}


def test_sessions_that_know_no_length_are_left_out(root):
    recorded(root, {"a": None, "b": 50.0})

    assert shards.known_launches_s(root / "baselines", "smoke") == {"b": 50.0}


def test_selected_workloads_alone_are_planned(root):
    plan = planned(root, shards=2, select=("a", "c"))

    assert parts(plan) == [("a",), ("c",)]
    assert plan.selection == ("a", "c")


def test_the_same_commit_gives_the_same_plan(root):
    recorded(root, {"a": 10.0, "b": 90.0, "c": 20.0})

    assert planned(root, shards=2) == planned(root, shards=2)


def test_each_class_measures_the_whole_suite(root):
    plan = planned(root, shards=2, machine_classes=("h100", "l4"))

    assert [unit.id for unit in plan.units] == [
        "h100-1-of-2",
        "h100-2-of-2",
        "l4-1-of-2",
        "l4-2-of-2",
    ]
    unit = shards.unit_of_shard(plan, "2/2", "l4")
    assert unit is not None
    assert (unit.id, shards.shard_of(unit, plan.shards)) == ("l4-2-of-2", "2/2")


def test_a_unit_says_which_workloads_and_against_what(root):
    (unit,) = planned(root, shards=1, select=("b",), against="main").units

    narrowed = shards.narrowed(MeasureOptions(root=root), unit)

    assert (narrowed.select, narrowed.against, narrowed.unit) == (("b",), "main", "1-of-1")


def test_another_base_than_the_planned_one_is_refused(root):
    (unit,) = planned(root, shards=1, against="main").units

    with pytest.raises(UsageError, match="expected --against 'main', as it was planned"):
        shards.narrowed(MeasureOptions(root=root, against="other"), unit)


def test_a_unit_of_another_commit_is_refused(root):
    with pytest.raises(UsageError, match="expected commit"):
        shards.narrowed(MeasureOptions(root=root), a_unit("a"))


def test_runs_of_a_folder_are_found_wherever_they_lie(tmp_path):
    for name in ("one/run.json", "two/deep/run.json", "two/other.json"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")

    found = [path.relative_to(tmp_path).as_posix() for path in shards.run_files(tmp_path)]

    assert found == ["one/run.json", "two/deep/run.json"]


def test_a_file_of_one_node_that_cannot_be_read_does_not_take_the_others_with_it(tmp_path):
    plan = a_work_plan(a_unit("a", id="1-of-2"), a_unit("b", id="2-of-2"))
    files.write(tmp_path / "plan.json", plan)
    good = a_shard(a_run(a_measured("a", *STEADY)), plan.units[0]).run
    (tmp_path / "runs/one").mkdir(parents=True)
    files.write(tmp_path / "runs/one/run.json", good)
    (tmp_path / "runs/two").mkdir()
    (tmp_path / "runs/two/run.json").write_text('{"type": "run"')
    told = []

    merged = shards.merge(
        MergeOptions(runs=(tmp_path / "runs",), plan=tmp_path / "plan.json"), notify=told.append
    )[None]

    assert [each.workload for each in merged.measured] == ["a"]
    assert [each.workload for each in merged.failed] == ["b"]
    assert "two/run.json: expected a JSON document" in told[0]


def test_a_second_wave_keeps_together_what_is_compared_within_a_session(root):
    (root / "workloads/suite.toml").write_text(
        """
[suites.smoke]
workloads = [
  { workload = "a", launch = "torchrun", matrix = { world_size = [1, 2] } },
  { workload = "b", matrix = { compiled = [true, false] } },
  { workload = "c" },
]
"""
    )
    workloads = suite.plan(root / "workloads", "smoke", root=root).workloads

    def a_session(factor=1.0, slower=(), **more):
        return a_run(
            *[
                a_measured(
                    each.id,
                    *scaled(STEADY, factor * (1.5 if each.id in slower else 1.0)),
                    parameters=each.parameters,
                )
                for each in workloads
            ],
            environment=an_environment(node=""),
            **more,
        )

    for number, day in enumerate(DAYS):
        accepted(root / "baselines", a_session(day, id=f"day-{number}"), mode=accept.Mode.APPEND)
    commit = repositories.Repository(root).commit()
    first = a_session(
        slower=("a.world_size=2", "b.compiled=true"), commit=commit, interleaved=an_interleaved()
    )
    files.write(root / "first.json", first)

    plan = planned(root, shards=2, after=root / "first.json")

    is_suspect = [
        {name: bool(metrics) for name, metrics in unit.suspected.items()} for unit in plan.units
    ]
    assert sorted(is_suspect, key=str) == [
        {"a.world_size=1": False, "a.world_size=2": True},
        {"b.compiled=false": False, "b.compiled=true": True},
    ]
