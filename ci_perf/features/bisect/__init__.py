"""Find the commit that made a workload worse: sessions of commits beside a good one."""

from ci_perf.hooks import Feature, FeatureCommand

FEATURE = Feature(
    commands={
        "bisect": FeatureCommand(
            group="Every day",
            does="Find the commit that made a workload slower or larger.",
            target="ci_perf.features.bisect.command:bisect_command",
        )
    },
    functions={"bisect": "ci_perf.features.bisect.bisect:bisect"},
    documents={"bisection": "ci_perf.features.bisect.bisection:Bisection"},
)
