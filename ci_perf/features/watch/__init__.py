"""Watch a branch: from a suspicion of its history to the commit that made it worse."""

from ci_perf.hooks import Feature, FeatureCommand

FEATURE = Feature(
    commands={
        "watch": FeatureCommand(
            group="CI and scale",
            does="Find the commits that made your branch slower since its baselines.",
            target="ci_perf.features.watch.command:watch_command",
            shown=False,
        )
    },
)
