"""The files of a checkout or of a commit; nothing of them is run."""
