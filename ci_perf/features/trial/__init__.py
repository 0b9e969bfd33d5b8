"""Show a newcomer the red report of the own program: a slowdown is planted into it."""

from ci_perf.hooks import Feature, FeatureCommand

FEATURE = Feature(
    commands={
        "try": FeatureCommand(
            group="First week",
            does="Slow down your own program on purpose, and show the report that becomes red.",
            target="ci_perf.features.trial.command:try_command",
        )
    },
)
