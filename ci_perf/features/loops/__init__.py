"""Loops that belong to a framework or a script: which of its iterations a check times."""

from ci_perf.hooks import Feature

FEATURE = Feature(
    functions={
        "steps": "ci_perf.features.loops.recording:steps",
        "record": "ci_perf.features.loops.recording:record",
        "HuggingFaceCallback": "ci_perf.features.loops.hugging_face:HuggingFaceCallback",
        "LightningCallback": "ci_perf.features.loops.lightning:LightningCallback",
    },
)
