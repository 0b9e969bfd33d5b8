"""Prove that a change makes a workload faster or smaller, and loses nothing else."""

from ci_perf.hooks import Feature, FeatureCommand

FEATURE = Feature(
    commands={
        "prove": FeatureCommand(
            group="Every day",
            does="Prove that a change is faster, or needs less memory, and print a receipt.",
            target="ci_perf.features.proof.command:prove_command",
        )
    },
    documents={"receipt": "ci_perf.features.proof.receipt:Receipt"},
)
