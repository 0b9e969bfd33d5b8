"""Gate benchmarks that are written for pytest-benchmark or pytest-codspeed, unchanged."""

from ci_perf.hooks import Feature, FeatureSource

FEATURE = Feature(
    sources={
        "pytest": FeatureSource(
            metavar="PATH",
            does="Measure tests of this file or folder that use the fixture or the marker "
            "`benchmark` of pytest-benchmark or pytest-codspeed; may be repeated.",
            open="ci_perf.features.pytest_benchmarks.suite:open_tests",
            plan="ci_perf.features.pytest_benchmarks.suite:plan_tests",
        )
    },
    find_failure="ci_perf.features.pytest_benchmarks.suite:find_failure",
)
