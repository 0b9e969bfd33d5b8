"""Measure what a machine can show: launches of the same code, and a planted slowdown."""

from ci_perf.hooks import Feature, FeatureCommand

FEATURE = Feature(
    commands={
        "calibrate": FeatureCommand(
            group="Every day",
            does="Measure what this machine can show: its statistic, and the limit it can hold.",
            target="ci_perf.features.calibrate.command:calibrate_command",
        )
    },
)
