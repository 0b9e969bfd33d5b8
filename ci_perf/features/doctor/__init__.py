"""Say what a machine is, and why it cannot measure on a GPU when it cannot."""

from ci_perf.hooks import Feature, FeatureCommand

FEATURE = Feature(
    commands={
        "doctor": FeatureCommand(
            group="First week",
            does="Say what this machine is, and why CUDA is not available when it is not.",
            target="ci_perf.features.doctor.command:doctor_command",
        )
    },
)
