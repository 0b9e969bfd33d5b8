"""Capabilities beside the gate, each a folder; `ci_perf/hooks.py` says how they join it."""
