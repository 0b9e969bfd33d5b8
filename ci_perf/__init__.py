"""A performance gate for PyTorch: measure a fixed suite, judge it, report it."""

from ci_perf.version import __version__

__all__ = ["__version__"]
