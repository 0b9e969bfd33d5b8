import json
from pathlib import Path

import jsonschema
import msgspec
import pytest

from ci_perf import suite
from ci_perf.baselines import accept
from ci_perf.judging import compare, summarise
from ci_perf.model import codec, schema
from ci_perf.model.samples import Sampled, SampledMetric, Samples
from tests import rehearsals, watches
from tests.calibrations import a_calibration
from tests.runs import a_failed, a_measured, a_run

PUBLISHED = Path(__file__).parents[3] / "docs/schema"


@pytest.mark.parametrize("kind", sorted(schema.KINDS))
def test_the_published_schema_is_current(kind):
    published = (PUBLISHED / f"{kind}.schema.json").read_text()

    assert published == schema.render(kind, schema.KINDS[kind]), (
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
        "baseline": accepted[0].baseline,
        "calibration": a_calibration(),
        "rehearsed": rehearsals.a_document(),
        "samples": Samples(workloads=(_sampled(),)),
        "suite": suite.load(suite.find_shipped("workloads")),
        "watch": watches.a_watch(),
    }


def _sampled():
    metric = SampledMetric(unit="s", kind="time")
    return Sampled(workload="a", metric=metric, history=((1.0, (1.0, 2.0)),), pairs=((1.0, 1.1),))


@pytest.mark.parametrize("kind", sorted(schema.KINDS))
def test_what_we_write_fits_its_published_schema(kind, tmp_path):
    document = documents(tmp_path)[kind]

    jsonschema.validate(
        json.loads(codec.encode(document)),
        json.loads(schema.render(kind, schema.KINDS[kind])),
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
            json.loads(schema.render("run", schema.KINDS["run"])),
            cls=jsonschema.Draft202012Validator,
        )
