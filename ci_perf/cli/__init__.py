"""The command line: one thin file per command. Options in, one call, exit code out."""
