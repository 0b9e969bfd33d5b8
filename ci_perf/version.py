"""The version of ci-perf, and nothing else: every file that it writes carries it."""

__version__ = "0.1.0"
