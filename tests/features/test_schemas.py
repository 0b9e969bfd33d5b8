"""The documents of features fit their published schemas."""

import json
from pathlib import Path

import jsonschema
import pytest

from ci_perf import hooks
from ci_perf.cli.suite_commands import render_schema
from ci_perf.features.explain.answer import ExplainedWorkload, ExplainedWorkloads
from ci_perf.features.history.backfilled import Backfill, BackfilledCommit
from ci_perf.model import codec
from ci_perf.model.explanation import Explanation
from tests.features.backtest.backtests import a_backtest
from tests.features.bisect.bisections import a_bisected, a_bisection
from tests.features.fleet.work_plans import a_work_plan
from tests.features.history.branch_histories import (
    a_branch_history,
    a_change,
    a_line,
    a_workload_history,
    skipped,
)
from tests.features.proof.receipts import a_receipt
from tests.runs import a_run
from tests.step_profiles import a_cause

PUBLISHED = Path(__file__).parents[2] / "docs/schema"


def documents():
    return {
        "history": a_branch_history(
            a_workload_history([1e-3], [1.1e-3], lines=(a_line(a_change(1)),)), skipped=(skipped(),)
        ),
        "backfill": Backfill(
            tool=a_run().tool,
            suite="smoke",
            baselines="baselines",
            commits=(BackfilledCommit(commit=a_bisected(1).commit, outcome="measured"),),
        ),
        "backtest": a_backtest(),
        "bisection": a_bisection(),
        "explanation": ExplainedWorkloads(
            suite="smoke",
            workloads=(
                ExplainedWorkload(workload="a", explanation=Explanation(causes=(a_cause(),))),
                ExplainedWorkload(workload="b", trouble="out of memory"),
            ),
        ),
        "plan": a_work_plan(),
        "receipt": a_receipt(),
    }


@pytest.mark.parametrize("kind", sorted(hooks.find_documents()))
def test_what_a_feature_writes_fits_its_published_schema(kind):
    published = (PUBLISHED / f"{kind}.schema.json").read_text()

    assert published == render_schema(kind), "run: ci-perf schema --directory docs/schema"
    jsonschema.validate(
        json.loads(codec.encode(documents()[kind])),
        json.loads(published),
        cls=jsonschema.Draft202012Validator,
    )
