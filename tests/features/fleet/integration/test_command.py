"""`fleet plan`, `measure` and `merge`: what they refuse, and one report of two classes."""

import datetime as dt
import json

import pytest

from ci_perf.features.fleet.work_plan import WorkPlan
from ci_perf.model.baseline import Baseline
from ci_perf.model.comparison import Comparison
from ci_perf.model.run import Run
from ci_perf.system import files
from tests import repositories
from tests.features.fleet.work_plans import a_shard, a_unit, a_work_plan
from tests.projects import Project
from tests.runs import GPU, STEADY, a_measured, a_run, an_environment

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
    done = project.run("fleet", "plan", "--units", "2", "--against", "main", "-o", "../plan.json")
    assert done.code == 0, done.err
    return project, done, files.read(git.root.parent / "plan.json", WorkPlan)


def test_a_plan_names_each_workload_once_and_says_who_measures_what(planned):
    _, done, plan = planned

    assert sorted(name for unit in plan.units for name in unit.workloads) == ["a", "b", "c"]
    assert plan.against == "main"
    assert "1-of-2: 2 workloads, about" in done.err


def test_a_matrix_is_what_github_takes(planned):
    project, _, plan = planned
    matrix = project.root.parent / "outputs"
    options = ("--units", "2", "--machine-class", "h100", "--matrix-output", matrix)
    done = project.run("fleet", "plan", *options, "-o", "../h100.json")

    assert done.code == 0, done.err
    text = matrix.read_text()
    assert text.startswith("matrix<<")
    jobs = json.loads(text[text.index("{") : text.rindex("}") + 1])["include"]
    assert [(job["unit"], job["class"]) for job in jobs] == [
        ("h100-1-of-2", "h100"),
        ("h100-2-of-2", "h100"),
    ]
    assert [tuple(job["workloads"].split()) for job in jobs] == [u.workloads for u in plan.units]


def test_there_are_no_more_units_than_can_be_measured_apart(planned):
    project, _, _ = planned
    done = project.run("fleet", "plan", "--units", "5")

    assert len(json.loads(done.out)["units"]) == 3
    assert "note: fewer than 5 groups of workloads can be measured apart" in done.err


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("fleet plan --units 0", "0 is not in the range"),
        ("fleet plan --units 20000", "--units: expected 1 to 10,000, found 20000"),
        ("fleet plan --units 2 nope", "no workload 'nope'"),
        ("fleet plan --units 2 --against nosuch", "nosuch: expected a branch, tag or com"),
        (
            "fleet plan --units 1 --machine-class x --machine-class x",
            "--machine-class: expected different names, found one twice",
        ),
        ("fleet plan --units 1 --machine-class ../x", "--machine-class: expected letters"),
        ("fleet plan --units 1 -o workloads/suite.toml", "would overwrite workloads/su"),
        ("fleet plan --units 1 -o m --matrix-output m", "--output m: would overwr"),
        ("fleet run nope.json --engine local -o x", "nope.json: this file does not exist"),
        ("fleet merge nope.json -o run.json", "nope.json: this file does not exist"),
        ("fleet measure --plan ../plan.json", "Missing option '--unit'"),
        (
            "fleet measure --plan ../plan.json --unit 1-of-3",
            "expected one of the plan, found '1-of-3'",
        ),
        ("fleet measure --plan ../plan.json --unit 1-of-2 a", "expected no workloads beside it"),
        ("fleet measure --plan nope.json --unit 1-of-2", "nope.json: this file does not exist"),
        (
            "fleet measure --plan ../plan.json --unit 1-of-2 -o ../plan.json",
            "would overwrite ../plan.json",
        ),
    ],
)
def test_what_cannot_be_planned_or_merged_is_refused_with_a_sentence(planned, line, message):
    done = planned[0].run(*line.split())

    assert done.code == 2
    assert message in done.err
    assert "Traceback" not in done.err


def test_a_unit_is_measured_for_real_and_its_run_says_whose_it_is(planned):
    project, _, plan = planned
    unit = plan.units[1]
    options = ("--plan", "../plan.json", "--unit", unit.id, "--processes", "1")
    done = project.run("fleet", "measure", *options, "-o", "../unit-run.json")

    run = files.read(project.root.parent / "unit-run.json", Run)
    assert done.code == 0, done.err
    assert (run.unit, run.workloads()) == (unit.id, unit.workloads)
    (session,) = run.sessions
    assert session.node == run.environment.noted.host_hash


def merged(project, *shards, plan=None, output="merged", options=()):
    """Write runs and their plan, and merge them."""
    files.write(project.root / "plan.json", plan or a_work_plan(*UNITS))
    names = []
    for i, shard in enumerate(shards):
        names.append(f"{i}.json")
        files.write(project.root / names[-1], shard.run)
    return project.run(
        *("fleet", "merge", "plan.json", *names, "-o", output),
        *("--comparison", "comparisons" if output == "merged" else "comparison.json"),
        *options,
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


def test_a_paused_merge_passes_and_its_comparison_names_the_date(project):
    end = str(dt.datetime.now(dt.UTC).date() + dt.timedelta(days=7))
    cpu = a_run(a_measured("a", *STEADY))
    done = merged(project, a_shard(cpu, UNITS[1]), options=(f"--paused-until={end}",))

    judged = files.read(project.root / "comparisons/cpu.json", Comparison)
    assert (done.code, judged.exit_code, judged.paused_until) == (0, 3, end)


def test_what_a_folder_does_not_hold_fails(project):
    files.write(project.root / "plan.json", a_work_plan())
    (project.root / "shards").mkdir()
    done = project.run("fleet", "merge", "plan.json", "shards", "-o", "run.json")

    assert done.code == 3
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
        ("", "found an empty file"),
        ('{"type": "run", "duration_s": NaN}', "found:"),
        ('{"type": "baseline"}', "expected 'run', found 'baseline'"),
        (" " * (50 * 2**20 + 1), "expected at most 50 MiB"),
    ],
    ids=["cut off", "empty", "NaN", "another document", "too large"],
)
def test_a_file_of_a_stranger_is_refused_with_a_sentence(project, content, message):
    files.write(project.root / "plan.json", a_work_plan())
    (project.root / "hostile.json").write_text(content)

    done = project.run("fleet", "merge", "plan.json", "hostile.json", "-o", "run.json")

    assert done.code == 2
    assert f"hostile.json: {message}" in done.err or message in done.err
    assert not (project.root / "run.json").exists()


def test_a_link_is_not_followed_in_a_folder_of_artifacts_nor_by_name(project):
    shards = project.root / "shards/one"
    shards.mkdir(parents=True)
    files.write(project.root / "plan.json", a_work_plan())
    files.write(project.root / "secret.json", a_run(a_measured("a", *STEADY)))
    (shards / "run.json").symlink_to(project.root / "secret.json")

    done = project.run("fleet", "merge", "plan.json", "shards", "-o", "run.json")

    assert done.code == 3
    assert "shards/one/run.json: expected a file, found a link" in done.err


def test_the_plan_and_the_runs_are_not_overwritten(project):
    files.write(project.root / "plan.json", a_work_plan())
    before = (project.root / "plan.json").read_bytes()

    done = project.run("fleet", "merge", "plan.json", "-o", "plan.json")

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
