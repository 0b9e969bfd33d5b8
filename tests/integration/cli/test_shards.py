"""`ci-perf plan`, `run --shard` and `merge`: what they refuse, and one report of two classes."""

import json

import msgspec
import pytest

from ci_perf.model.baseline import Baseline
from ci_perf.model.comparison import Comparison
from ci_perf.model.node_check import CanaryBound, MachineBounds, NodeCheck, NodeRefusal
from ci_perf.model.run import Run
from ci_perf.model.shards import WorkPlan
from ci_perf.system import files
from tests import repositories
from tests.comparisons import an_interleaved
from tests.projects import FAST, NAP, NAP_SETTINGS, SLOW, Project
from tests.runs import GPU, STEADY, a_measured, a_run, an_environment
from tests.work_plans import a_shard, a_unit, a_work_plan

UNITS = (a_unit("a", id="h100", machine_class="h100"), a_unit("a", id="cpu", machine_class="cpu"))


@pytest.fixture(scope="module")
def planned(tmp_path_factory):
    """A repository with three workloads, planned for two nodes."""
    git = repositories.init(tmp_path_factory.mktemp("planned") / "project")
    project = Project(git.root)
    for name in "abc":
        project.workload(name)
    project.suite(*"abc", device="cpu")
    git.commit()
    git.ask("switch", "--quiet", "--create", "branch")
    git.commit()
    done = project.run("plan", "--shards", "2", "--against", "main", "-o", "../plan.json")
    assert done.code == 0, done.err
    return project, done, files.read(git.root.parent / "plan.json", WorkPlan)


def test_a_plan_names_each_workload_once_and_says_who_measures_what(planned):
    _, done, plan = planned

    assert sorted(name for unit in plan.units for name in unit.workloads) == ["a", "b", "c"]
    assert (plan.against, plan.shards) == ("main", 2)
    assert "1-of-2: 2 workloads, about" in done.err


def test_a_matrix_is_what_github_takes(planned):
    project, _, plan = planned
    done = project.run("plan", "--shards", "2", "--machine-class", "h100", "--matrix")

    jobs = json.loads(done.out)["include"]
    assert len(done.out.splitlines()) == 1
    assert [(job["unit"], job["shard"], job["class"]) for job in jobs] == [
        ("h100-1-of-2", "1/2", "h100"),
        ("h100-2-of-2", "2/2", "h100"),
    ]
    assert [tuple(job["workloads"].split()) for job in jobs] == [u.workloads for u in plan.units]


def screened(planned, **more):
    """Write the run of a first wave: what two nodes have screened, without a pair."""
    project, _, plan = planned
    heads = [a_measured(name, *STEADY) for name in "abc"]
    run = a_run(
        *heads,
        interleaved=an_interleaved(**{"stopped": "budget", "suspects": 3, "pairs": 0, **more}),
        commit=plan.source.commit,
    )
    files.write(project.root.parent / "first.json", run)
    return ("plan", "--after", "../first.json", "--shards", "3", "-o", "../second.json")


def test_a_second_wave_has_pairs_for_what_the_first_has_not_cleared(planned):
    project, _, _ = planned
    done = project.run(*screened(planned))

    assert done.code == 0, done.err
    second = files.read(project.root.parent / "second.json", WorkPlan)
    assert sorted(name for unit in second.units for name in unit.workloads) == ["a", "b", "c"]
    assert [unit.id for unit in second.units] == [f"pairs-{i}-of-3" for i in (1, 2, 3)]
    assert all("step_time_s" in metrics for u in second.units for metrics in u.suspected.values())
    every = sum(len(metrics) for u in second.units for metrics in u.suspected.values())
    assert {unit.suspects for unit in second.units} == {every}  # they share the chance of an alarm
    assert second.against == "main"


def test_a_second_wave_needs_a_first_one_without_pairs(planned):
    project, _, _ = planned
    done = project.run(*screened(planned, pairs=3))

    assert done.code == 2
    assert "expected a run that has a base and launched no pair, found pairs" in done.err


def test_a_second_wave_takes_its_workloads_from_the_first(planned):
    project, _, _ = planned
    done = project.run(*screened(planned), "a")

    assert done.code == 2
    assert "--after: expected no workloads" in done.err


def test_more_shards_than_workloads_leave_empty_ones_which_say_so(planned):
    project, _, _ = planned
    done = project.run("plan", "--shards", "5", "--matrix")
    empty = project.run("run", "--shard", "5/5", "-o", "../none.json")

    assert len(json.loads(done.out)["include"]) == 3
    assert "note: 2 of 5 shards have no workload" in done.err
    assert empty.code == 0
    assert "shard 5/5 has no workload: nothing to measure, and no ../none.json" in empty.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["plan", "--shards", "0"], "0 is not in the range"),
        (["plan", "--shards", "-1"], "-1 is not in the range"),
        (["plan", "--shards", "20000"], "--shards: expected a number from 1 to 10,000"),
        (["plan", "--shards", "2", "nope"], "no workload 'nope'"),
        (["plan", "--shards", "2", "--against", "nosuch"], "nosuch: expected a branch, tag or com"),
        (
            ["plan", "--shards", "1", "--machine-class", "x", "--machine-class", "x"],
            "--machine-class: expected different names, found one twice",
        ),
        (["plan", "--shards", "1", "--machine-class", "../x"], "--machine-class: expected letters"),
        (["plan", "--shards", "1", "-o", "workloads/suite.toml"], "would overwrite workloads/su"),
        (["plan", "--shards", "1", "-o", "m", "--matrix-output", "m"], "--output m: would overwr"),
        (["run", "--plan", "../plan.json", "--shard", "1/3"], "expected a part of 2, as the plan"),
        (
            ["run", "--plan", "../plan.json", "--shard", "1/2", "--machine-class", "x"],
            "--machine-class: expected none, as in the plan; found 'x'",
        ),
        (["run", "--plan", "../plan.json", "--shard", "1/2", "a"], "expected no workloads beside"),
        (
            ["run", "--plan", "../plan.json", "--shard", "1/2", "-o", "../plan.json"],
            "--output ../plan.json: would overwrite ../plan.json",
        ),
        (["run", "--shard", "5/4"], "as 2/4, at most 10,000, found '5/4'"),
        (["run", "--shard", "0/4"], "found '0/4'"),
        (["run", "--shard", "x"], "found 'x'"),
        (["run", "--shard", "-1/4"], "found '-1/4'"),
        (["run", "--machine-class", "h100"], "--machine-class: expected --shard I/N"),
        (["run", "--unit", "nope.json"], "nope.json: expected a file, found nothing"),
        (["merge", "--plan", "nope.json", "-o", "run.json"], "nope.json: expected a file"),
    ],
)
def test_what_cannot_be_planned_or_measured_is_refused_with_a_sentence(planned, arguments, message):
    project, _, _ = planned
    done = project.run(*arguments)

    assert done.code == 2
    assert message in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"source": {"commit": "0" * 40, "branch": "x", "dirty": False}}, "expected commit '0000"),
        ({"tool": {"name": "ci-perf", "version": "9.9"}}, "expected version of ci-perf '9.9'"),
    ],
)
def test_a_unit_of_other_code_is_not_measured(planned, change, message):
    project, _, plan = planned
    unit = msgspec.to_builtins(plan.units[0]) | change
    (project.root.parent / "unit.json").write_text(json.dumps(unit))

    done = project.run("run", "--unit", "../unit.json")

    assert done.code == 2
    assert message in done.err


def test_a_unit_is_measured_for_real_and_its_run_says_whose_it_is(planned):
    project, _, _ = planned
    project.run("plan", "--shards", "3", "-o", "../three.json")
    unit = files.read(project.root.parent / "three.json", WorkPlan).units[1]
    files.write(project.root.parent / "unit.json", unit)

    done = project.run("run", "--unit", "../unit.json", "--no-record", "-o", "../unit-run.json")

    run = files.read(project.root.parent / "unit-run.json", Run)
    assert done.code == 0, done.err
    assert (run.unit, run.workloads()) == (unit.id, unit.workloads)
    (session,) = run.sessions
    assert session.node == run.environment.noted.host_hash

    # The same node, of which sessions say that it used to be a thousand times as fast.
    bound = CanaryBound(usual_s=1e-7, most_s=2e-7, sessions=3)
    canaries = dict.fromkeys(("launch_latency", "matmul_random", "memory_copy"), bound)
    bounds = MachineBounds(machine=run.environment.hard, canaries=canaries)
    check = NodeCheck(bounds=(bounds,))
    files.write(project.root.parent / "unit.json", msgspec.structs.replace(unit, node=check))
    suite = project.root / "workloads/suite.toml"
    suite.write_text(suite.read_text().replace("canaries = false", "canaries = true"))

    refused = project.run("run", "--unit", "../unit.json", "-o", "../unit-run.json")

    assert refused.code == 3
    assert "matmul_random: expected at most 0.0002 ms, as 3 sessions of this kind" in refused.err
    refusal = files.read(project.root.parent / "unit-run.json", NodeRefusal)
    assert refusal.unit == unit.id


def merged(project, *shards, plan=None, output="merged"):
    """Write runs and their plan, and merge them."""
    files.write(project.root / "plan.json", plan or a_work_plan(*UNITS))
    names = []
    for i, shard in enumerate(shards):
        names.append(f"{i}.json")
        files.write(project.root / names[-1], shard.run)
    return project.run(
        *("merge", *names, "--plan", "plan.json", "-o", output),
        *("--comparison-output", "comparisons" if output == "merged" else "comparison.json"),
    )


def test_several_classes_are_merged_into_a_folder_and_reported_in_one_comment(project):
    gpu = a_run(a_measured("a", *STEADY), environment=an_environment(hard=GPU))
    cpu = a_run(a_measured("a", *STEADY))
    done = merged(project, a_shard(gpu, UNITS[0]), a_shard(cpu, UNITS[1]))

    assert done.code == 3  # there are no baselines
    for name in ("h100", "cpu"):
        run = files.read(project.root / f"merged/{name}.json", Run)
        assert [session.unit for session in run.sessions] == [name]
        assert files.read(project.root / f"comparisons/{name}.json", Comparison).exit_code == 3
    shown = project.run("github", "publish", "comparisons/h100.json", "comparisons/cpu.json")
    assert "NVIDIA H200" in shown.out
    assert "AMD EPYC" in shown.out


def test_a_folder_without_a_run_is_named(project):
    files.write(project.root / "plan.json", a_work_plan())
    (project.root / "shards").mkdir()
    done = project.run("merge", "shards", "--plan", "plan.json", "-o", "run.json")

    assert done.code == 3
    assert "note: shards: expected run.json in it or in a folder below, found none" in done.err
    assert "failed: a: no node has measured it: no run of unit 1-of-1 has it" in done.err


def test_several_classes_do_not_fit_into_a_file(project):
    cpu = a_run(a_measured("a", *STEADY))
    done = merged(project, a_shard(cpu, UNITS[1]), output="merged.json")

    assert done.code == 2
    assert "expected a folder for 2 files" in done.err
    assert not (project.root / "merged.json").exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"type": "run"', "expected a JSON document"),
        ("", "found nothing"),
        ('{"type": "run", "duration_s": NaN}', "found:"),
        ('{"type": "baseline"}', "expected 'run', found 'baseline'"),
        (" " * (50 * 2**20 + 1), "expected at most 50 MiB"),
    ],
    ids=["cut off", "empty", "NaN", "another document", "too large"],
)
def test_a_file_of_a_stranger_is_refused_with_a_sentence(project, content, message):
    files.write(project.root / "plan.json", a_work_plan())
    (project.root / "hostile.json").write_text(content)

    done = project.run("merge", "hostile.json", "--plan", "plan.json", "-o", "run.json")

    assert done.code == 2
    assert f"hostile.json: {message}" in done.err or message in done.err
    assert not (project.root / "run.json").exists()


def test_a_link_is_not_followed_in_a_folder_of_artifacts_nor_by_name(project):
    shards = project.root / "shards/one"
    shards.mkdir(parents=True)
    files.write(project.root / "plan.json", a_work_plan())
    files.write(project.root / "secret.json", a_run(a_measured("a", *STEADY)))
    (shards / "run.json").symlink_to(project.root / "secret.json")

    done = project.run("merge", "shards", "--plan", "plan.json", "-o", "run.json")

    assert done.code == 3
    assert "shards/one/run.json: expected a file, found a link" in done.err


def test_the_plan_and_the_runs_are_not_overwritten(project):
    files.write(project.root / "plan.json", a_work_plan())
    before = (project.root / "plan.json").read_bytes()

    done = project.run("merge", "--plan", "plan.json", "-o", "plan.json")

    assert done.code == 2
    assert (project.root / "plan.json").read_bytes() == before


def test_a_baseline_of_a_merged_run_knows_the_node_and_the_length_of_a_launch(project):
    plan = a_work_plan(a_unit("a", id="1-of-2"), a_unit("b", id="2-of-2"))
    whole = a_run(a_measured("a", *STEADY), a_measured("b", *STEADY))
    nodes = ("a" * 12, "b" * 12)
    shards = [a_shard(whole, unit, node=node) for unit, node in zip(plan.units, nodes, strict=True)]
    merged(project, *shards, plan=plan, output="run.json")

    done = project.run("accept", "run.json", "--reason", "first")

    assert done.code == 0, done.err
    sessions = [
        files.read(file, Baseline).sessions[0]
        for file in sorted((project.root / "baselines").rglob("*.json"))
    ]
    assert [session.node for session in sessions] == list(nodes)
    assert [session.launch_s for session in sessions] == [3.8, 3.8]


def verdicts(project, run):
    """Judge a run, and return what is said of each metric."""
    done = project.run("compare", run, "--format", "json")
    rows = json.loads(done.out)["rows"]
    said = {(r["workload"], r.get("metric", "")): (r["verdict"], r["code"]) for r in rows}
    return said, done.code


def test_real_launches_that_are_merged_have_the_verdicts_of_one_session(tmp_path):
    git = repositories.init(tmp_path / "project")
    project = Project(git.root)
    project.workload("one", NAP).workload("two", NAP)
    project.suite("one", "two", settings=NAP_SETTINGS, device="cpu")
    git.commit(product_py=FAST)
    git.ask("switch", "--quiet", "--create", "branch")
    git.commit(product_py=SLOW)
    options = ("--against", "main", "--no-explain", "--no-record", "--processes", "1")
    project.run("run", *options, "-o", "../whole.json")
    project.run("plan", "--shards", "2", "--against", "main", "-o", "../plan.json")
    whole = files.read(tmp_path / "whole.json", Run)
    plan = files.read(tmp_path / "plan.json", WorkPlan)
    for unit in reversed(plan.units):
        folder = tmp_path / "shards" / unit.id
        folder.mkdir(parents=True)
        node = whole.environment.noted.host_hash
        files.write(folder / "run.json", a_shard(whole, unit, node=node).run)

    done = project.run(
        *("merge", "../shards", "--plan", "../plan.json", "-o", "../merged.json"),
        *("--comparison-output", "../comparison.json"),
    )

    said, code = verdicts(project, "../whole.json")
    assert said["one", "step_time_s"][0] == said["two", "step_time_s"][0] == "regressed"
    assert verdicts(project, "../merged.json") == (said, code)
    assert done.code == code == 1
