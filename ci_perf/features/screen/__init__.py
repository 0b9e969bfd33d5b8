"""Say before any machine is asked for whether a change can have changed what is measured."""

from ci_perf.hooks import Feature, FeatureCommand

FEATURE = Feature(
    commands={
        "screen": FeatureCommand(
            group="CI and scale",
            does="Say without torch or a GPU whether a change needs a measurement.",
            target="ci_perf.features.screen.command:screen_command",
            shown=False,
        )
    },
)
