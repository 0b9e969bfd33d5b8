"""Whether an explanation names the planted cause: `python -m benchmarks.causes`."""
