"""The scripts of examples/exports, and `ci-perf export` for each format."""

import json
from datetime import datetime
from pathlib import Path

import msgspec
import pandas as pd
import pytest
from prometheus_client.parser import text_string_to_metric_families
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from ci_perf.model.comparison import Verdict
from ci_perf.system import files
from tests.comparisons import a_change, a_comparison, a_head
from tests.histories import a_pair, in_turns
from tests.processes import run_python
from tests.projects import Project
from tests.runs import HEAD_COMMIT, a_failed, a_measured, a_run

ROOT = Path(__file__).parents[4]
RECIPES = sorted((ROOT / "examples/exports").glob("*.py"))
MLP = a_measured("mlp.width=8", 1e-3, 3e-3, flops=10**9, losses=(4.0, 0.5))
RUN = a_run(MLP, a_failed("conv"))
LATER = msgspec.structs.replace(
    a_run(a_measured("mlp.width=8", 5e-3), id="fedcba987654"), started_at="2026-11-22T10:00:00Z"
)
COMPARISON = a_comparison(a_change("mlp"))


@pytest.fixture
def project(tmp_path):
    files.write(tmp_path / "run.json", RUN)
    files.write(tmp_path / "comparison.json", COMPARISON)
    return Project(tmp_path)


def follow(name, folder, *runs):
    """Run a recipe."""
    recipe = ROOT / f"examples/exports/{name}.py"
    done = run_python(recipe, *(runs or ["run.json"]), cwd=folder)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda path: path.stem)
def test_a_recipe_is_short_and_the_page_names_it(recipe):
    lines = [line for line in recipe.read_text().splitlines() if line and "import " not in line]

    assert len(lines) <= 16
    assert f"(../examples/exports/{recipe.name})" in (ROOT / "docs/exports.md").read_text()


def test_bencher_gets_a_measure_per_metric_with_its_range(project):
    follow("bencher", project.root)

    step = json.loads((project.root / "bmf.json").read_text())["mlp.width=8"]["step_time_s"]
    assert step == {"value": 2e-3, "lower_value": 1e-3, "upper_value": 3e-3}


def test_github_action_benchmark_gets_no_number_of_which_more_is_better(project):
    follow("github_action_benchmark", project.root)

    class Entry(msgspec.Struct, forbid_unknown_fields=True):
        name: str
        value: float
        unit: str
        range: str

    entries = msgspec.json.decode((project.root / "benchmark.json").read_bytes(), type=list[Entry])
    known = {entry.name: entry for entry in entries}
    assert known["mlp.width=8/step_time_s"].range == "± 0.001"
    assert "mlp.width=8/items_per_s" not in known


def test_the_hud_gets_every_launch_of_every_metric(project):
    follow("pytorch_hud", project.root)

    records = json.loads((project.root / "hud.json").read_text())
    values = {record["metric"]["name"]: record["metric"]["benchmark_values"] for record in records}
    assert values["step_time_s"] == [1e-3, 3e-3]
    assert values["flops"] == [1e9, 1e9]
    assert {record["model"]["name"] for record in records} == {"mlp.width=8"}


def test_asv_gets_the_results_of_a_commit(project):
    follow("asv", project.root)

    (file,) = project.root.glob("results/runner/*-ci-perf.json")
    results = json.loads(file.read_text())
    benchmarks = json.loads((project.root / "results/benchmarks.json").read_text())
    assert results["commit_hash"] == HEAD_COMMIT
    assert results["results"]["ci_perf.mlp.width=8"] == [[2e-3], [], "1"]
    assert results["results"].keys() == benchmarks.keys() - {"version"}


def test_prometheus_gets_a_gauge_that_is_the_median(project):
    follow("prometheus", project.root)

    (gauge,) = text_string_to_metric_families((project.root / "ci_perf.prom").read_text())
    known = {(each.labels["workload"], each.labels["metric"]): each for each in gauge.samples}
    assert known["mlp.width=8", "step_time_s"].value == 2e-3


def test_tensorboard_gets_a_point_per_run_and_the_losses_of_each_step(project):
    files.write(project.root / "later.json", LATER)

    follow("tensorboard_scalars", project.root, "later.json", "run.json")

    events = EventAccumulator(str(project.root / "tensorboard/mlp.width=8")).Reload()
    steps = [(point.wall_time, point.value) for point in events.Scalars("step_time_s")]
    losses = [(point.step, point.value) for point in events.Scalars(f"loss/{RUN.id}")]
    starts = [datetime.fromisoformat(run.started_at).timestamp() for run in (RUN, LATER)]
    assert sorted(steps) == [(starts[0], pytest.approx(2e-3)), (starts[1], pytest.approx(5e-3))]
    assert losses == [(0, 4.0), (1, 0.5)]
    assert [path.name for path in (project.root / "tensorboard").iterdir()] == ["mlp.width=8"]


def test_a_table_in_csv_has_the_losses_of_each_step(project):
    table = project.run("export", "run.json", "--format", "csv", "-o", "run.csv")

    assert table.code == 0, table.err
    losses = pd.read_csv(project.root / "run.csv").query("metric == 'loss' and process == 0")
    assert losses[["step", "value"]].to_numpy().tolist() == [[0, 4.0], [1, 0.5]]


@pytest.mark.parametrize(
    ("recipe", "file"),
    [("bencher", "bmf.json"), ("pytorch_hud", "hud.json"), ("prometheus", "ci_perf.prom")],
)
def test_a_tool_for_numbers_of_a_run_gets_no_loss(project, recipe, file):
    follow(recipe, project.root)

    written = (project.root / file).read_text()
    assert "flops" in written
    assert "loss" not in written


def test_a_run_is_exported_as_a_table(project):
    table = project.run("export", "run.json", "--format", "csv", "-o", "run.csv")

    assert table.code == 0, table.err
    written = pd.read_csv(project.root / "run.csv")
    assert written.query("metric == 'items_per_s'")["value"].tolist() == [8000.0, 8 / 3e-3]


def test_runs_side_by_side_are_one_table_of_csv(project):
    done = project.run("compare", *["run.json"] * 3, "--format", "csv", "-o", "runs.csv")

    assert done.code == 0, done.err
    assert len(pd.read_csv(project.root / "runs.csv")) % 3 == 0


@pytest.mark.parametrize("is_of_the_run", [True, False])
def test_a_page_draws_the_launches_of_the_run_beside_the_comparison(project, is_of_the_run):
    run = in_turns(RUN, [a_pair(1e-3, 2e-3)] * 3, workload="mlp.width=8")
    files.write(project.root / "run.json", run)
    head = a_head(run=run.id if is_of_the_run else "of another day")
    judged = a_comparison(a_change("mlp.width=8", Verdict.REGRESSED, ratio=2.0), head=head)
    files.write(project.root / "comparison.json", judged)

    page = project.run("export", "comparison.json", "--format", "html")

    assert page.code == 0, page.err
    assert ("launches, in their order" in page.out) is is_of_the_run
    assert ("run.json is run 0123456789ab, the comparison is of" in page.err) is not is_of_the_run


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (("run.json", "--format", "html"), "--format html: expected a comparison"),
        (("run.json", "--format", "csv", "-o", "run.json"), "would overwrite"),
    ],
)
def test_what_a_format_does_not_hold_is_refused(project, asked, told):
    done = project.run("export", *asked)

    assert done.code == 2
    assert told in done.err
