"""Record which files, settings and modules a launch uses."""
