"""Read the past of a branch from its committed baselines, or measure it afterwards."""

from ci_perf.hooks import Feature, FeatureCommand

FEATURE = Feature(
    commands={
        "history": FeatureCommand(
            group="Every day",
            does="Show the history of each metric of a branch, from the baselines in git.",
            target="ci_perf.features.history.command:history_command",
        )
    },
    functions={
        "backfill": "ci_perf.features.history.backfill:backfill",
        "history": "ci_perf.features.history.history:history",
    },
    documents={
        "backfill": "ci_perf.features.history.backfilled:Backfill",
        "history": "ci_perf.features.history.branch_history:BranchHistory",
    },
)
