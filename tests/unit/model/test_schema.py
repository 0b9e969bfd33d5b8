import json
from pathlib import Path

import jsonschema
import msgspec
import pytest

from ci_perf import suite
from ci_perf.baselines import accept
from ci_perf.cli import suite_commands
from ci_perf.features.history.backfilled import Backfill, BackfilledCommit
from ci_perf.judging import compare, summarise
from ci_perf.model import codec
from ci_perf.model.samples import Sampled, SampledMetric, Samples
from tests.bisections import a_bisected, a_bisection
from tests.branch_histories import a_branch_history, a_change, a_line, a_workload_history, skipped
from tests.calibrations import a_calibration
from tests.runs import a_failed, a_measured, a_run
from tests.work_plans import a_work_plan

PUBLISHED = Path(__file__).parents[3] / "docs/schema"


@pytest.mark.parametrize("kind", sorted(suite_commands.KINDS))
def test_the_published_schema_is_current(kind):
    published = (PUBLISHED / f"{kind}.schema.json").read_text()

    assert published == suite_commands.render_schema(kind), (
        "run: ci-perf schema --directory docs/schema"
    )


def documents(tmp_path):
    run = a_run(a_measured("a", 1e-3, 2e-3), a_failed("b"))
    whole = a_run(a_measured("a", 1e-3, 2e-3))
    side = summarise.run(run, label="run.json")
    comparison = compare.compare(side, side)
    accepted = accept.prepare(tmp_path, whole, compare.compare(side, side), workloads=["a"])
    return {
        "run": run,
        "comparison": comparison,
        "history": a_branch_history(
            a_workload_history([1e-3], [1.1e-3], lines=(a_line(a_change(1)),)), skipped=(skipped(),)
        ),
        "backfill": Backfill(
            tool=run.tool,
            suite="smoke",
            baselines="baselines",
            commits=(BackfilledCommit(commit=a_bisected(1).commit, outcome="measured"),),
        ),
        "baseline": accepted[0].baseline,
        "bisection": a_bisection(),
        "calibration": a_calibration(),
        "plan": a_work_plan(),
        "samples": Samples(workloads=(_sampled(),)),
        "suite": suite.load(suite.shipped("workloads")),
    }


def _sampled():
    metric = SampledMetric(unit="s", kind="time")
    return Sampled(workload="a", metric=metric, history=((1.0, (1.0, 2.0)),), pairs=((1.0, 1.1),))


@pytest.mark.parametrize("kind", sorted(suite_commands.KINDS))
def test_what_we_write_fits_its_published_schema(kind, tmp_path):
    document = documents(tmp_path)[kind]

    jsonschema.validate(
        json.loads(codec.encode(document)),
        json.loads(suite_commands.render_schema(kind)),
        cls=jsonschema.Draft202012Validator,
    )
    assert isinstance(document, msgspec.Struct)


@pytest.mark.parametrize("name", ["..", "-rf", "a b", "a\n"])
def test_the_schema_refuses_the_names_that_we_refuse(name, tmp_path):
    run = json.loads(codec.encode(documents(tmp_path)["run"]))
    run["measured"][0]["workload"] = name

    with pytest.raises(jsonschema.ValidationError, match="does not match"):
        jsonschema.validate(
            run,
            json.loads(suite_commands.render_schema("run")),
            cls=jsonschema.Draft202012Validator,
        )
