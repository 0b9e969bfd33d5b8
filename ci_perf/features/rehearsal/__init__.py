"""Plant slowdowns into the user's own program: `try` shows one red, `rehearse` proves the gate."""

from ci_perf.hooks import Feature, FeatureCommand

FEATURE = Feature(
    commands={
        "try": FeatureCommand(
            group="First week",
            does="Slow down your own program on purpose, and show the report that becomes red.",
            target="ci_perf.features.rehearsal.command:try_command",
        ),
        "rehearse": FeatureCommand(
            group="First week",
            does="Prove that your gate can fail: plant slowdowns, and see what it finds.",
            target="ci_perf.features.rehearsal.command:rehearse_command",
        ),
    },
)
