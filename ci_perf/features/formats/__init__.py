"""Read what other benchmarks write: numbers of a load client, or of a tool of benchmarks."""

from ci_perf.hooks import Feature

FEATURE = Feature(formats={})
