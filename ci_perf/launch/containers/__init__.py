"""Launch workers in containers: one fresh container per task, by the engine's command line."""
