"""Judge what other harnesses wrote, and write what notebooks and people read."""

from ci_perf.hooks import Feature, FeatureCommand

FEATURE = Feature(
    commands={
        "export": FeatureCommand(
            group="CI and scale",
            does="Write a run or a comparison as a table, or as a page of HTML.",
            target="ci_perf.features.interchange.command:export_command",
            shown=False,
        ),
        "judge": FeatureCommand(
            group="CI and scale",
            does="Judge numbers of another harness.",
            target="ci_perf.features.interchange.command:judge_command",
            shown=False,
        ),
    },
    functions={
        "judge": "ci_perf.features.interchange.judge:judge",
        "load": "ci_perf.features.interchange.notebook:load",
    },
)
