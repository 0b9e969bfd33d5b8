"""Say what a machine is, and why it cannot measure on a GPU when it cannot."""

from ci_perf.hooks import Feature, FeatureCommand

FEATURE = Feature(
    commands={
        "doctor": FeatureCommand(
            group="First week",
            does="Describe this machine, and say why CUDA is missing.",
            target="ci_perf.features.doctor.command:doctor_command",
        )
    },
)
