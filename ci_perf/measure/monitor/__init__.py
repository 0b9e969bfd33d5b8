"""The monitor: a process beside the worker that watches the GPUs and the host meanwhile."""
