"""The command line: thin files of commands, by subject. Options in, one call, exit code out."""
