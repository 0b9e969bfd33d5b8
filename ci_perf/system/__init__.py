"""The operating system: child processes, signals, locks, scratch folders, files, git."""
