"""Say why a step takes longer, and what limits it: by launches of its own, which decide nothing."""

from ci_perf.hooks import Feature, FeatureCommand

FEATURE = Feature(
    commands={
        "explain": FeatureCommand(
            group="Every day",
            does="Name the functions that cause a change, or the waits of a step.",
            target="ci_perf.features.explain.command:explain_command",
        )
    },
    functions={"explain": "ci_perf.features.explain.explain:explain"},
    documents={"explanation": "ci_perf.features.explain.answer:ExplainedWorkloads"},
    after_pairs="ci_perf.features.explain.session:Explaining",
    profiler="ci_perf.features.explain.worker:profile",
    after_judging="ci_perf.features.explain.causes:explain_comparison",
    section="ci_perf.features.explain.report:explain_rows",
    line_notes="ci_perf.features.explain.report:list_line_notes",
)
