"""The monitor: a process that watches the GPUs and the host while a worker measures."""
