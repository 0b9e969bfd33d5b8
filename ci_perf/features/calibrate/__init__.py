"""Measure what a machine can show, by launches of the same code."""

from ci_perf.hooks import Feature, FeatureCommand

FEATURE = Feature(
    commands={
        "calibrate": FeatureCommand(
            group="Every day",
            does="Measure the noise of this machine, and the smallest limit that it can check.",
            target="ci_perf.features.calibrate.command:calibrate_command",
        )
    },
)
