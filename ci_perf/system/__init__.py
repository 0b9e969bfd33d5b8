"""Work with the operating system: processes, signals, locks, scratch folders, files, git."""
