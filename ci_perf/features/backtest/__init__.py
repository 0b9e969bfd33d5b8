"""Say which of the last merges moved: each is launched beside its parent, and measured again."""

from ci_perf.hooks import Feature, FeatureCommand

FEATURE = Feature(
    commands={
        "backtest": FeatureCommand(
            group="First week",
            does="Say which of your last merges made the code slower, larger or faster.",
            target="ci_perf.features.backtest.command:backtest_command",
        )
    },
    documents={"backtest": "ci_perf.features.backtest.backtested:Backtest"},
    history_lines="ci_perf.features.backtest.report:list_history_lines",
)
