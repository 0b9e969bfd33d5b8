"""Measure a suite on several machines: plan units, have an engine run them, merge their runs."""

from ci_perf.hooks import Feature, FeatureCommand

FEATURE = Feature(
    commands={
        "fleet": FeatureCommand(
            group="CI and scale",
            does="Measure a suite on several machines: plan, run, merge.",
            target="ci_perf.features.fleet.command:fleet_command",
        )
    },
    functions={
        "measure_unit": "ci_perf.features.fleet.fleet:measure_unit",
        "merge": "ci_perf.features.fleet.fleet:merge",
        "plan": "ci_perf.features.fleet.fleet:plan",
    },
    documents={"plan": "ci_perf.features.fleet.work_plan:WorkPlan"},
)
