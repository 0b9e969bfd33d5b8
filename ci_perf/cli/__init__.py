"""The front door: one thin file per command; options in, one call per step, exit code out."""
