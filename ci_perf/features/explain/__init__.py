"""Say why a step takes longer, and what limits it: by launches of its own, which decide nothing."""

from ci_perf.hooks import Feature, FeatureCommand

FEATURE = Feature(
    commands={
        "explain": FeatureCommand(
            group="Every day",
            does="Name the functions that cause a change, or the waits of a step.",
            target="ci_perf.features.explain.command:explain_command",
        )
    },
    functions={"explain": "ci_perf.features.explain.explain:explain"},
)
