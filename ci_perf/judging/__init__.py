"""Two sides in, verdicts out. No files, no network, no clock."""
