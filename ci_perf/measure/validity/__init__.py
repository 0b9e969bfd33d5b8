"""Whether the machine can be trusted: asked before a run, and judged by what the monitor saw."""
